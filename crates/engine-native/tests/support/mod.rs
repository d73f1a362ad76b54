//! A real engine on a directory of its own, and commands run through its runners.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "for tests only, and each test file uses a part of it"
)]

pub mod battery;
pub mod residue;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbank_channel::RunnerClient;
use sandbank_engine::{Engine, ImageName, InstanceId, Limits, MachineSpec, NetworkMode, SandboxId};
use sandbank_engine_native::{NativeEngine, NativeSettings, StorageKind};
use sandbank_protocol::{CommandSpec, PtySize};
use sandbank_test_support::machines::{Machines, command};
pub use sandbank_test_support::machines::{Output, run, run_spec, until as wait_for};

pub struct TestEngine {
    pub engine: Arc<NativeEngine>,
    pub settings: NativeSettings,
    machines: Machines,
    data: Data,
}

impl Deref for TestEngine {
    type Target = Machines;

    fn deref(&self) -> &Machines {
        &self.machines
    }
}

/// The directory of one test, and what must not outlive it even when the test fails.
struct Data {
    dir: tempfile::TempDir,
    instance: InstanceId,
}

impl Drop for Data {
    fn drop(&mut self) {
        let machines = self.dir.path().join("data/machines");
        for entry in std::fs::read_dir(machines).into_iter().flatten().flatten() {
            let record = std::fs::read(entry.path().join("machine.json")).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
            if let Some(pid) = record["process"]["pid"].as_i64() {
                println!("killing the machine of a failed test, process {pid}");
                let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        }
        for path in residue::cgroups(self.instance.as_str()) {
            let path = path.trim_start_matches("cgroup ");
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                let _ = std::fs::remove_dir(entry.path());
            }
            let _ = std::fs::remove_dir(path);
        }
        let pool = self.dir.path().join("data/pool");
        let _ = std::process::Command::new("umount").args(["--quiet", "--lazy"]).arg(pool).status();
    }
}

/// Machines need root. Says so and counts as skipped where there is none.
pub fn cannot_run() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if !root {
        println!("skipped: making machines with every control needs root");
    }
    !root
}

impl TestEngine {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut NativeSettings)) -> Self {
        let data = tempfile::Builder::new().prefix("sandbank-native-").tempdir().unwrap();
        let data = Data { dir: data, instance: InstanceId::random() };
        let mut settings = NativeSettings::new(data.dir.path().join("data"), data.instance.clone());
        settings.storage = StorageKind::Plain;
        settings.user_namespaces_ready = 4;
        settings.networks_ready = 2;
        settings.cgroups_ready = 4;
        change(&mut settings);
        let engine = NativeEngine::start(settings.clone()).await.unwrap();
        Self::over(engine, settings, data)
    }

    fn over(engine: NativeEngine, settings: NativeSettings, data: Data) -> Self {
        let engine = Arc::new(engine);
        Self { machines: Machines::new(engine.clone(), spec), engine, settings, data }
    }

    /// What a daemon that was killed leaves to the next: nothing is shut down.
    pub async fn restart(self) -> Self {
        self.restart_after(|_| {}).await
    }

    /// With something done while no engine is there.
    pub async fn restart_after(self, meanwhile: impl FnOnce(&NativeSettings)) -> Self {
        let Self { engine, settings, machines, data } = self;
        drop(machines);
        drop(Arc::into_inner(engine).expect("nobody else uses the engine"));
        meanwhile(&settings);
        Self::over(started(&settings).await, settings, data)
    }

    /// Ends everything and checks that nothing is left on the host.
    pub async fn finish(self) {
        self.destroy_all().await;
        self.engine.shutdown().await;
        residue::assert_none(&self.settings).await;
    }
}

/// Tasks of an engine that was here before let go of the directory when they are next polled.
pub async fn started(settings: &NativeSettings) -> NativeEngine {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match NativeEngine::start(settings.clone()).await {
            Ok(engine) => return engine,
            Err(error) if Instant::now() > deadline => panic!("{error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

pub fn spec() -> MachineSpec {
    MachineSpec {
        id: SandboxId::random(),
        image: ImageName::host(),
        limits: Limits {
            cpu_millis: 2000,
            memory_bytes: 256 << 20,
            pids: 128,
            disk_bytes: None,
            tmp_bytes: 8 << 20,
        },
        network: NetworkMode::None,
        env: BTreeMap::new(),
        workspace: None,
    }
}

pub fn spec_with_id(id: &SandboxId) -> MachineSpec {
    MachineSpec { id: id.clone(), ..spec() }
}

/// What it prints is in `stderr`, where all but stdout goes.
pub async fn run_on_terminal(client: &RunnerClient, argv: &[&str]) -> Output {
    let spec = CommandSpec { pty: Some(PtySize { rows: 24, cols: 80 }), ..command(argv) };
    run_spec(client, &spec).await.unwrap()
}
