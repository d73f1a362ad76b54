//! An engine whose machines are plain processes: the real runner, a directory, no isolation.
//!
//! Everything that a machine starts carries its id in the environment, so that destroying it
//! finds what it left behind. Machines outlive whoever calls the engine, as they should.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process};
use sandbank_engine::{
    Capabilities, Control, ControlReport, DeathCause, Engine, EngineError, Freed, ImageInfo,
    ImageName, ImportProgress, Machine, MachineSpec, MachineState, MachineStats, SandboxId, Stream,
    WorkspaceId, WorkspaceInfo,
};
use sandbank_protocol::RunnerConfig;
use tokio::sync::{Semaphore, watch};

const MARK: &str = "SANDBANK_TEST_MACHINE";

pub(crate) struct ProcessEngine {
    name: &'static str,
    directory: tempfile::TempDir,
    runner: PathBuf,
    machines: Mutex<HashMap<SandboxId, Process>>,
    /// Runners of machines that were removed behind everybody's back.
    strays: Mutex<Vec<Pid>>,
    /// What carries the bytes of open channels.
    carriers: Mutex<Vec<tokio::task::AbortHandle>>,
    pub(crate) creates: AtomicUsize,
    /// Destroys that fail before one succeeds.
    pub(crate) failing_destroys: AtomicUsize,
    /// What has a kept workspace.
    users: Mutex<HashMap<SandboxId, WorkspaceId>>,
    /// Creates wait here; tests that want slow ones take the permits away.
    pub(crate) create_gate: Semaphore,
    /// What each takes beyond that.
    pub(crate) create_takes_ms: AtomicU64,
}

#[derive(Clone)]
struct Process {
    pid: Pid,
    paused: bool,
    /// Its death is nobody's business.
    quiet: Arc<AtomicBool>,
    death: watch::Receiver<Option<DeathCause>>,
}

impl ProcessEngine {
    pub(crate) fn new() -> Arc<Self> {
        Self::named("process")
    }

    /// Beside another one.
    pub(crate) fn named(name: &'static str) -> Arc<Self> {
        let directory = tempfile::Builder::new().prefix("sandbank-process-engine-").tempdir();
        let directory = directory.expect("a temporary directory");
        let runner = directory.path().join("runner");
        std::fs::write(&runner, sandbank_runner_binary::RUNNER).expect("the runner is written");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&runner, executable).expect("it is made executable");
        for name in ["machines", "kept"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        Arc::new(Self {
            name,
            directory,
            runner,
            machines: Mutex::default(),
            strays: Mutex::default(),
            carriers: Mutex::default(),
            creates: AtomicUsize::new(0),
            failing_destroys: AtomicUsize::new(0),
            users: Mutex::default(),
            create_gate: Semaphore::new(1000),
            create_takes_ms: AtomicU64::new(0),
        })
    }

    fn place(&self, id: &SandboxId) -> PathBuf {
        self.directory.path().join("machines").join(id.as_str())
    }

    fn kept(&self, id: &WorkspaceId) -> PathBuf {
        self.directory.path().join("kept").join(id.as_str())
    }

    fn process(&self, id: &SandboxId) -> Result<Process, EngineError> {
        let machines = self.machines.lock().unwrap();
        machines.get(id).cloned().ok_or_else(|| EngineError::NotFound(id.clone()))
    }

    /// Ids of machines that are there, in whatever shape.
    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        let entries = std::fs::read_dir(self.directory.path().join("machines")).unwrap();
        entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    pub(crate) fn pid(&self, id: &SandboxId) -> Pid {
        self.process(id).unwrap().pid
    }

    /// Every channel breaks; the runners know nothing of it.
    pub(crate) fn cut_channels(&self) {
        self.carriers.lock().unwrap().drain(..).for_each(|carrier| carrier.abort());
    }

    /// The runner dies and a new one takes its place, as a container engine may do it.
    pub(crate) fn restart_runner(&self, spec: &MachineSpec) {
        let old = self.machines.lock().unwrap().remove(&spec.id).unwrap();
        old.quiet.store(true, Ordering::SeqCst);
        kill_process(old.pid, Signal::KILL).unwrap();
        let gone = format!("/proc/{}", old.pid.as_raw_nonzero());
        while Path::new(&gone).exists() {
            std::thread::yield_now();
        }
        let process = self.start(spec).unwrap();
        // Whoever waits for the machine's death waits for the same thing as before.
        self.machines.lock().unwrap().insert(spec.id.clone(), process);
    }

    /// From now on whoever connects to the machine reaches this listener instead of its runner.
    #[allow(dead_code, reason = "the server's tests share this file and use it")]
    pub(crate) fn impersonate(&self, id: &SandboxId) -> tokio::net::UnixListener {
        let socket = self.place(id).join("runner.sock");
        std::fs::remove_file(&socket).unwrap();
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        self.cut_channels();
        listener
    }

    /// A machine that no daemon asked for.
    pub(crate) fn make_orphan(&self) -> SandboxId {
        let id = SandboxId::random();
        std::fs::create_dir(self.place(&id)).unwrap();
        id
    }

    /// Removes a machine so that nobody who waits for its death is told.
    pub(crate) fn remove_behind_the_back(&self, id: &SandboxId) {
        let process = self.machines.lock().unwrap().remove(id).unwrap();
        self.strays.lock().unwrap().push(process.pid);
        std::fs::rename(self.place(id), self.directory.path().join(id.as_str())).unwrap();
    }

    fn start(&self, spec: &MachineSpec) -> Result<Process, EngineError> {
        let place = self.place(&spec.id);
        let own = || place.join("workspace");
        let workspace = spec.workspace.as_ref().map_or_else(own, |id| self.kept(id));
        std::fs::create_dir_all(&workspace).map_err(EngineError::io("make a workspace"))?;
        let mut env = spec.env.clone();
        env.insert(MARK.to_owned(), spec.id.to_string());
        let config = RunnerConfig {
            workspace: workspace.to_string_lossy().into_owned(),
            env,
            ..RunnerConfig::default()
        };
        let mut child = Command::new(&self.runner)
            .args(["serve", "--ready", "--config"])
            .arg(serde_json::to_string(&config).unwrap())
            .arg("--listen")
            .arg(place.join("runner.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(EngineError::io("start a runner"))?;
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut ready).map_err(EngineError::io("hear from it"))?;
        if !ready.contains("ready") {
            return Err(EngineError::Internal(format!("the runner said {ready:?}")));
        }
        let pid = Pid::from_child(&child);
        let (announce, death) = watch::channel(None);
        let quiet = Arc::new(AtomicBool::new(false));
        let silenced = quiet.clone();
        std::thread::spawn(move || {
            let status = child.wait().expect("a child can be waited for");
            if silenced.load(Ordering::SeqCst) {
                // Those who wait for it wait for ever.
                std::mem::forget(announce);
            } else {
                announce.send_replace(Some(cause(status)));
            }
        });
        Ok(Process { pid, paused: false, quiet, death })
    }

    fn signal(&self, id: &SandboxId, signal: Signal) {
        if let Ok(process) = self.process(id) {
            let _ = kill_process(process.pid, signal);
        }
        for pid in marked(id) {
            let _ = kill_process(pid, signal);
        }
    }

    fn set_paused(&self, id: &SandboxId, paused: bool) -> Result<(), EngineError> {
        self.process(id)?;
        self.signal(id, if paused { Signal::STOP } else { Signal::CONT });
        if let Some(process) = self.machines.lock().unwrap().get_mut(id) {
            process.paused = paused;
        }
        Ok(())
    }
}

fn cause(status: ExitStatus) -> DeathCause {
    match (status.code(), status.signal()) {
        (Some(code), _) => DeathCause::Exited { code },
        (_, Some(signal)) => DeathCause::Signaled { signal },
        _ => DeathCause::Unknown,
    }
}

/// Processes that a machine's commands started.
fn marked(id: &SandboxId) -> Vec<Pid> {
    let mark = format!("{MARK}={id}");
    let carries_mark = |pid: &Pid| {
        let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
        let environ = std::fs::read(Path::new(&path)).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter(carries_mark).collect()
}

#[async_trait]
impl Engine for ProcessEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        "test".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            network_egress: true,
            disk_quota: false,
            // Accepted to be weaker, as an engine's configuration may have it.
            memory_limit: false,
            cpu_limit: false,
            pids_limit: false,
            pause: true,
            kept_workspaces: true,
            concurrent_creates: 4,
        }
    }

    async fn controls(&self) -> Vec<ControlReport> {
        Vec::new()
    }

    async fn create(&self, spec: &MachineSpec) -> Result<Machine, EngineError> {
        self.creates.fetch_add(1, Ordering::SeqCst);
        if spec.image.as_str() == "missing" {
            return Err(EngineError::ImageNotFound(spec.image.clone()));
        }
        if spec.limits.disk_bytes.is_some() {
            let reason = "a directory has no quota".to_owned();
            return Err(EngineError::ControlUnavailable { control: Control::DiskQuota, reason });
        }
        std::fs::create_dir(self.place(&spec.id)).map_err(EngineError::io("make a machine"))?;
        let _permit = self.create_gate.acquire().await.expect("the gate is never closed");
        let slowness = Duration::from_millis(self.create_takes_ms.load(Ordering::SeqCst));
        tokio::time::sleep(slowness).await;
        let made_workspace = spec.workspace.as_ref().is_some_and(|id| !self.kept(id).exists());
        if let Some(workspace) = &spec.workspace {
            self.users.lock().unwrap().insert(spec.id.clone(), workspace.clone());
        }
        if spec.image.as_str() == "broken" {
            let made = spec.workspace.as_ref().map(|id| std::fs::create_dir_all(self.kept(id)));
            made.transpose().map_err(EngineError::io("make a workspace"))?;
            return Err(EngineError::BadImage("told to fail".to_owned()));
        }
        let process = self.start(spec)?;
        let pid = Some(process.pid.as_raw_nonzero().get());
        self.machines.lock().unwrap().insert(spec.id.clone(), process);
        let (id, state) = (spec.id.clone(), MachineState::Running);
        Ok(Machine { id, state, pid, made_workspace })
    }

    async fn connect(&self, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError> {
        if self.process(id)?.death.borrow().is_some() {
            return Err(EngineError::Dead(id.clone()));
        }
        let socket = self.place(id).join("runner.sock");
        let stream = tokio::net::UnixStream::connect(socket).await;
        let mut runner = stream.map_err(EngineError::io("connect to a runner"))?;
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let carrier = tokio::spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut theirs, &mut runner).await;
        });
        self.carriers.lock().unwrap().push(carrier.abort_handle());
        Ok(Box::new(ours))
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), EngineError> {
        let failing = &self.failing_destroys;
        let mut left = failing.load(Ordering::SeqCst);
        while left > 0 {
            match failing.compare_exchange(left, left - 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Err(EngineError::Unavailable("told to fail".to_owned())),
                Err(now) => left = now,
            }
        }
        self.signal(id, Signal::KILL);
        if let Ok(mut process) = self.process(id) {
            let _ = process.death.wait_for(Option::is_some).await;
        }
        let place = self.place(id);
        if place.exists() {
            std::fs::remove_dir_all(place).map_err(EngineError::io("remove a machine"))?;
        }
        self.machines.lock().unwrap().remove(id);
        self.users.lock().unwrap().remove(id);
        Ok(())
    }

    async fn pause(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.set_paused(id, true)
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.set_paused(id, false)
    }

    async fn list(&self) -> Result<Vec<Machine>, EngineError> {
        let machine = |id: SandboxId| match self.process(&id) {
            Ok(process) if process.death.borrow().is_none() => {
                let state =
                    if process.paused { MachineState::Paused } else { MachineState::Running };
                let pid = Some(process.pid.as_raw_nonzero().get());
                Machine { id, state, pid, made_workspace: false }
            }
            _ => Machine { id, state: MachineState::Dead, pid: None, made_workspace: false },
        };
        Ok(self.ids().into_iter().map(machine).collect())
    }

    async fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        let pid = self.process(id)?.pid.as_raw_nonzero();
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm"));
        let statm = statm.map_err(EngineError::io("read a machine's memory"))?;
        let resident: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        let memory_bytes = resident * 4096;
        Ok(MachineStats { memory_bytes, memory_peak_bytes: memory_bytes, ..Default::default() })
    }

    async fn wait_dead(&self, id: &SandboxId) -> Result<DeathCause, EngineError> {
        let mut death = self.process(id)?.death;
        let cause = death.wait_for(Option::is_some).await.map(|cause| cause.clone());
        Ok(cause.ok().flatten().unwrap_or(DeathCause::Unknown))
    }

    async fn images(&self) -> Result<Vec<ImageInfo>, EngineError> {
        Ok(Vec::new())
    }

    async fn import_image(
        &self,
        name: &ImageName,
        _archive: &Path,
        _progress: &(dyn Fn(ImportProgress) + Send + Sync),
    ) -> Result<ImageInfo, EngineError> {
        Err(EngineError::ImageNotFound(name.clone()))
    }

    async fn remove_image(&self, name: &ImageName) -> Result<Freed, EngineError> {
        Err(EngineError::ImageNotFound(name.clone()))
    }

    async fn workspaces(&self) -> Result<Vec<WorkspaceInfo>, EngineError> {
        let users = self.users.lock().unwrap().clone();
        let entries = std::fs::read_dir(self.directory.path().join("kept")).unwrap();
        let ids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
        let info = |id: WorkspaceId| {
            let using = users.iter().filter(|(_, used)| **used == id);
            let in_use_by = using.map(|(user, _)| user.clone()).collect();
            WorkspaceInfo { id, bytes: 0, quota_bytes: None, in_use_by }
        };
        Ok(ids.map(info).collect())
    }

    async fn remove_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        let users = self.users.lock().unwrap().clone();
        let by: Vec<_> = users.into_iter().filter(|(_, used)| used == id).map(|u| u.0).collect();
        if !by.is_empty() {
            return Err(EngineError::WorkspaceInUse { id: id.clone(), by });
        }
        Ok(std::fs::remove_dir_all(self.kept(id)).is_ok())
    }

    async fn remove_empty_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        let is_used = self.users.lock().unwrap().values().any(|used| used == id);
        Ok(!is_used && std::fs::remove_dir(self.kept(id)).is_ok())
    }

    async fn shutdown(&self) {}
}

impl Drop for ProcessEngine {
    fn drop(&mut self) {
        for pid in self.strays.lock().unwrap().drain(..) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let machines = std::mem::take(&mut *self.machines.lock().unwrap());
        for (id, process) in machines {
            let _ = kill_process(process.pid, Signal::KILL);
            for pid in marked(&id) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}
