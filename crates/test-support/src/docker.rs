//! A Docker daemon of the test's own: socket, images and containers in a temporary directory, in
//! mount, pid and network namespaces of its own, so that nothing of it outlives the test and a
//! Docker that is there already is neither used nor disturbed.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::docker_users::Users;

/// Where the daemon writes whatever else it is told.
const ETC: &str = "/etc/docker";

/// Mounts hide `/run`, where a containerd of the system would be found, and `/etc/docker`. The
/// first process of the namespace outlives the daemon, so that containers can.
/// Copies of what other tests have mounted go first: they would keep it in use where the host's own
/// mounts are private.
const HOLD: &str = "mounted=$(cat /proc/self/mounts); \
    echo \"$mounted\" | while read -r device place rest; do \
    case $device in /dev/loop*|nsfs) umount --lazy \"$place\" ;; esac; done; \
    mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /etc/docker && \
    ip link set lo up && echo held && while :; do sleep 3600 & wait $!; done";

const START_DEADLINE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct PrivateDocker {
    dir: TempDir,
    live_restore: bool,
    users: Users,
    /// Of the daemon's command line, beside those that keep it apart.
    options: Vec<String>,
    /// The first process of the namespaces.
    first: u32,
    daemon: Option<Child>,
    /// Ends the thread that holds the namespaces: they go when it does.
    release: Option<mpsc::Sender<()>>,
    holder: Option<JoinHandle<()>>,
    /// Among those of this process.
    number: u32,
}

impl PrivateDocker {
    /// None, with a counted reason, where there can be none.
    pub fn start(live_restore: bool) -> anyhow::Result<Option<Self>> {
        Self::start_with(live_restore, Vec::new())
    }

    /// With further options of `dockerd`, such as another address it listens on.
    pub fn start_with(live_restore: bool, options: Vec<String>) -> anyhow::Result<Option<Self>> {
        Self::start_as(Users::Hosts, live_restore, options)
    }

    /// One that is not root.
    pub fn rootless() -> anyhow::Result<Option<Self>> {
        Self::start_as(Users::Rootless, false, Vec::new())
    }

    /// One that maps the users of containers.
    pub fn with_mapped_users() -> anyhow::Result<Option<Self>> {
        Self::start_as(Users::Mapped, false, Vec::new())
    }

    fn start_as(
        users: Users,
        live_restore: bool,
        mut options: Vec<String>,
    ) -> anyhow::Result<Option<Self>> {
        if crate::skip_unless_root() {
            return Ok(None);
        }
        if let Some(missing) = users.missing() {
            println!("skipped: {missing}");
            return Ok(None);
        }
        options.extend(users.option());
        for program in ["dockerd", "docker", "nsenter", "unshare"] {
            if find(program).is_none() {
                println!("skipped: there is no {program} here; see scripts/setup.sh --test");
                return Ok(None);
            }
        }
        // It stays: who removed it would take it from another that is about to mount over it.
        fs::create_dir_all(ETC)?;
        let dir = tempfile::Builder::new().prefix("sandbank-test-docker-").tempdir()?;
        let (first, release, holder) = hold()?;
        let mut docker = Self {
            dir,
            live_restore,
            users,
            options,
            first,
            daemon: None,
            release: Some(release),
            holder: Some(holder),
            number: COUNT.fetch_add(1, Ordering::Relaxed),
        };
        if let Some(script) = users.preparation(docker.dir()) {
            let prepared = docker.enter("sh")?.args(["-c", &script]).output()?;
            let complaint = String::from_utf8_lossy(&prepared.stderr);
            anyhow::ensure!(prepared.status.success(), "not prepared: {complaint}");
        }
        docker.start_daemon()?;
        Ok(Some(docker))
    }

    /// With one image, a busybox of that name.
    pub fn with_busybox(live_restore: bool, image: &str) -> anyhow::Result<Option<Self>> {
        let Some(docker) = Self::start(live_restore)? else { return Ok(None) };
        let archive = docker.dir().join("root.tar");
        if busybox_root(&archive)?.is_none() {
            return Ok(None);
        }
        docker.said(&["import", &archive.to_string_lossy(), image])?;
        Ok(Some(docker))
    }

    /// One for the tests that run at the same time; it goes with the last of them. Whoever starts it
    /// prepares it for all.
    pub fn shared(
        prepare: impl FnOnce(&Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Arc<Self>>> {
        static SHARED: Mutex<Weak<PrivateDocker>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(docker) = shared.upgrade() {
            return Ok(Some(docker));
        }
        let Some(docker) = Self::start(false)? else { return Ok(None) };
        prepare(&docker)?;
        let docker = Arc::new(docker);
        *shared = Arc::downgrade(&docker);
        Ok(Some(docker))
    }

    /// Containers, volumes and networks with the label of a daemon.
    pub fn objects_of(&self, instance: &str) -> anyhow::Result<Vec<String>> {
        let label = format!("label=sandbank.instance={instance}");
        let mut objects = Vec::new();
        for list in [&["ps", "-aq"][..], &["volume", "ls", "-q"], &["network", "ls", "-q"]] {
            let said = self.said(&[list, &["--filter", &label]].concat())?;
            objects.extend(said.lines().map(|line| format!("{}: {line}", list[0])));
        }
        Ok(objects)
    }

    /// Ids of the sandboxes that a daemon has containers for, and of those that have a volume of
    /// their own. `states` are Docker's words for containers; none are all.
    pub fn sandboxes_of(
        &self,
        instance: &str,
        states: &[&str],
    ) -> anyhow::Result<(BTreeSet<String>, BTreeSet<String>)> {
        let label = format!("label=sandbank.instance={instance}");
        let states: Vec<_> = states.iter().map(|state| format!("status={state}")).collect();
        let states = states.iter().flat_map(|state| ["--filter", state.as_str()]);
        let shown = ["--filter", &label, "--format", "{{.Label \"sandbank.sandbox\"}}"];
        let ids = |said: String| {
            // What belongs to the daemon itself has no sandbox.
            said.lines().filter(|id| !id.is_empty()).map(str::to_owned).collect()
        };
        let containers: Vec<_> = ["ps", "-a"].into_iter().chain(shown).chain(states).collect();
        let volumes: Vec<_> = ["volume", "ls"].into_iter().chain(shown).collect();
        Ok((ids(self.said(&containers)?), ids(self.said(&volumes)?)))
    }

    /// Whom a user of a container is on the host; none where nobody is mapped.
    pub fn mapped(&self, user: u32) -> Option<u32> {
        self.users.mapped(user)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Below which containers of tests have their cgroups.
    pub fn cgroup(&self) -> String {
        format!("/sandbank-test-docker-{}-{}", std::process::id(), self.number)
    }

    pub fn start_daemon(&mut self) -> anyhow::Result<()> {
        let at = |name: &str| self.dir.path().join(name);
        let config = format!("{{\"live-restore\": {}}}", self.live_restore);
        fs::write(at("daemon.json"), config)?;
        let log = fs::File::options().create(true).append(true).open(at("daemon.log"))?;
        let mut command = self.users.daemon(self.dir(), |program| self.enter(program))?;
        command
            .arg("--host")
            .arg(format!("unix://{}", self.socket().display()))
            .arg("--config-file")
            .arg(at("daemon.json"))
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("docker.pid"))
            .args(["--bridge", "none", "--log-level", "warn"])
            .args(["--cgroup-parent", &self.cgroup()])
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.daemon = Some(command.spawn().context("start a private Docker daemon")?);
        let deadline = Instant::now() + START_DEADLINE;
        while !self.docker(&["version"])?.status.success() {
            let ended = self.daemon.as_mut().map(Child::try_wait).transpose()?.flatten();
            anyhow::ensure!(ended.is_none(), "dockerd ended at once: {}", self.log_end());
            anyhow::ensure!(Instant::now() < deadline, "no answer from it: {}", self.log_end());
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// In order, as a service manager stops it. Without live restore, containers end.
    pub fn stop_daemon(&mut self) -> anyhow::Result<()> {
        self.end_daemon(Signal::TERM)
    }

    /// At once.
    pub fn kill_daemon(&mut self) -> anyhow::Result<()> {
        self.end_daemon(Signal::KILL)
    }

    fn end_daemon(&mut self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut daemon) = self.daemon.take() else { return Ok(()) };
        // `nsenter` forks into the pid namespace, and waits for the daemon.
        let pid = first_child(daemon.id()).or_else(|| i32::try_from(daemon.id()).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
        let deadline = Instant::now() + START_DEADLINE;
        while daemon.try_wait()?.is_none() {
            if Instant::now() > deadline {
                let _ = daemon.kill();
                let _ = daemon.wait();
                anyhow::bail!("dockerd did not end: {}", self.log_end());
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// The Docker CLI against this daemon.
    pub fn docker(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new("docker");
        command.env_clear().env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("HOME", self.dir.path());
        command.arg("--host").arg(format!("unix://{}", self.socket().display()));
        Ok(command.args(arguments).output()?)
    }

    /// The CLI's words; an error with its complaint when it fails.
    pub fn said(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.docker(arguments)?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::ensure!(output.status.success(), "docker {arguments:?}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Of the namespaces' first process.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// A program in the daemon's namespaces.
    pub fn enter(&self, program: &str) -> anyhow::Result<Command> {
        let path = find(program).with_context(|| format!("there is no {program} here"))?;
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.first.to_string());
        command.args(["--mount", "--pid", "--net", "--"]).arg(path);
        Ok(command)
    }

    pub fn log_end(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("daemon.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

impl Drop for PrivateDocker {
    fn drop(&mut self) {
        if let Err(error) = self.end_daemon(Signal::KILL) {
            eprintln!("the private Docker daemon: {error}");
        }
        drop(self.release.take());
        if let Some(holder) = self.holder.take() {
            let _ = holder.join();
        }
        remove_cgroups(&self.cgroup());
    }
}

/// Namespaces and their first process, which die with the thread that made them: the kernel tells
/// a child of its parent's death by thread.
fn hold() -> anyhow::Result<(u32, mpsc::Sender<()>, JoinHandle<()>)> {
    let (release, released) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let holder = std::thread::spawn(move || {
        let spawned = Command::new("unshare")
            .args(["--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"])
            // Not private: what the host unmounts must not live on in this copy.
            .args(["--propagation", "slave", "sh", "-c", HOLD])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return drop(tell.send(Err(error.into()))),
        };
        let mut word = [0; 4];
        let held = child.stdout.as_mut().map(|output| output.read_exact(&mut word));
        let first = match (held, first_child(child.id())) {
            (Some(Ok(())), Some(first)) => Ok(first.unsigned_abs()),
            _ => Err(anyhow::anyhow!("namespaces for a private Docker cannot be made")),
        };
        let _ = tell.send(first);
        let _ = released.recv();
        let _ = child.kill();
        let _ = child.wait();
    });
    let first = told.recv().context("the thread that holds the namespaces ended")??;
    Ok((first, release, holder))
}

fn first_child(parent: u32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split(' ').next()?.parse().ok()
}

/// They are empty a moment after the last process of the namespace is gone.
fn remove_cgroups(name: &str) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let cgroups = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let deadline = Instant::now() + START_DEADLINE;
    for point in cgroups.filter_map(|line| line.split(' ').nth(4)) {
        let top = PathBuf::from(format!("{point}{name}"));
        while top.is_dir() && Instant::now() < deadline {
            let children = fs::read_dir(&top).into_iter().flatten().flatten();
            for child in children.filter(|entry| entry.path().is_dir()) {
                let _ = fs::remove_dir(child.path());
            }
            if fs::remove_dir(&top).is_err() {
                std::thread::sleep(POLL);
            }
        }
    }
}

/// A program in the search path, or where administration tools are.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let administration = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let dirs = std::env::split_paths(&path).chain(administration);
    dirs.map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// A program that `scripts/unpacked.sh` finds or fetches; None, with a counted reason, where it did neither.
pub fn find_unpacked(program: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let unpacked = root.join(".build").join(program).join("usr/bin").join(program);
    let found = find(program).or_else(|| unpacked.is_file().then_some(unpacked));
    if found.is_none() {
        println!("skipped: there is no {program}; scripts/setup.sh --test fetches it");
    }
    found
}

/// The root of a file system with a static busybox under every name it has, as a tar archive at
/// `path`. None, with a counted reason, where there is no such busybox.
pub fn busybox_root(path: &Path) -> anyhow::Result<Option<()>> {
    let Some(busybox) = find("busybox") else {
        println!("skipped: there is no busybox here; see scripts/setup.sh --test");
        return Ok(None);
    };
    let names = Command::new(&busybox).arg("--list").output()?;
    let names = String::from_utf8(names.stdout)?;
    let mut archive = tar::Builder::new(fs::File::create(path)?);
    for directory in ["bin", "etc", "tmp", "var", "proc", "sys", "dev", "root"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        archive.append_data(&mut header, directory, std::io::empty())?;
    }
    archive.append_path_with_name(&busybox, "bin/busybox")?;
    for name in names.lines().filter(|name| !name.contains('/') && *name != "busybox") {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        archive.append_link(&mut header, format!("bin/{name}"), "busybox")?;
    }
    let passwd = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(passwd.len() as u64);
    archive.append_data(&mut header, "etc/passwd", &passwd[..])?;
    archive.finish()?;
    Ok(Some(()))
}
