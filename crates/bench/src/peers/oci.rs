//! crun and runc: a bundle with the same namespaces and a like file system as a sandbox of the
//! `host` image, started and entered by their command line, which is their only interface.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::host_root::{self, CPU_PERIOD, CPU_QUOTA, MEMORY_BYTES, PIDS, WORKSPACE};
use super::process::{self, Ready};

/// First id of the user namespace outside, and how many there are.
const FIRST_ID: u32 = 100_000;
const IDS: u32 = 65_536;

/// Where a hybrid machine has its v2 hierarchy. crun 1.8 refuses to work when that has controllers,
/// so it is hidden from crun.
const UNIFIED: &str = "/sys/fs/cgroup/unified";

pub(crate) struct OciRuntime {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// Holds the mount namespace that it must be started in, where there is such a need.
    inside: Option<Ready>,
    program: PathBuf,
    dir: TempDir,
    next: AtomicU64,
}

/// A container that runs `cat` until its input is closed.
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) ready: Ready,
}

impl OciRuntime {
    /// The inner error is a reason to do without it.
    pub(crate) fn find(name: &'static str) -> anyhow::Result<Result<Self, String>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Err("it is measured as root only".into()));
        }
        let Some(program) = process::find(name) else {
            return Ok(Err(format!("there is no {name} here (Debian: apt-get install {name})")));
        };
        let version = Command::new(&program).arg("--version").output()?;
        let version = String::from_utf8_lossy(&version.stdout);
        let version = version.lines().next().unwrap_or(name).to_owned();
        let dir = bundle(name).with_context(|| format!("make a bundle for {name}"))?;
        let next = AtomicU64::new(0);
        let mut runtime = Self { name, version, inside: None, program, dir, next };
        let Err(error) = runtime.probe() else { return Ok(Ok(runtime)) };
        let reason = format!("it does not run here: {error:#}{}", runtime.complaint());
        if name != super::CRUN || !Path::new(UNIFIED).exists() {
            return Ok(Err(reason));
        }
        runtime.inside = Some(process::start(&mut without_unified()?)?);
        match runtime.probe() {
            Ok(()) => Ok(Ok(runtime)),
            Err(error) => Ok(Err(format!("{reason}; and without v2: {error:#}"))),
        }
    }

    fn probe(&self) -> anyhow::Result<()> {
        let container = self.start()?;
        let entered = process::run(&mut self.exec(&container.id, &["true"]));
        container.ready.end_input()?;
        entered.map(drop)
    }

    /// Whether its command line begins with `nsenter`, which costs it a little.
    pub(crate) fn is_entered(&self) -> bool {
        self.inside.is_some()
    }

    /// Makes a container; it is ready when a byte has come back from inside.
    pub(crate) fn start(&self) -> anyhow::Result<Container> {
        let (id, mut command) = self.run_command();
        Ok(Container { id, ready: process::start(&mut command)? })
    }

    /// The command line that makes a new container.
    pub(crate) fn run_command(&self) -> (String, Command) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("sandbank-bench-{}-{number}", std::process::id());
        let mut command = self.command();
        command.arg("run").arg("--bundle").arg(self.dir.path()).arg(&id);
        (id, command)
    }

    pub(crate) fn exec(&self, id: &str, argv: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("exec").arg(id).args(argv);
        command
    }

    fn command(&self) -> Command {
        let mut command = match &self.inside {
            None => Command::new(&self.program),
            Some(holder) => {
                let mut command = Command::new("/usr/bin/nsenter");
                command.arg(format!("--mount=/proc/{}/ns/mnt", holder.pid())).arg(&self.program);
                command
            }
        };
        command.arg("--root").arg(self.dir.path().join("state"));
        command
    }

    /// What it says to a start whose errors are not thrown away.
    fn complaint(&self) -> String {
        let (_, mut command) = self.run_command();
        let output = command.stdin(std::process::Stdio::null()).output();
        let text = output.map(|output| output.stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().next_back().map(|line| format!(": {line}")).unwrap_or_default()
    }
}

/// A mount namespace in which the v2 hierarchy of a hybrid machine cannot be seen.
fn without_unified() -> anyhow::Result<Command> {
    let script = format!("umount {UNIFIED} && exec cat");
    process::bare(&["unshare", "--mount", "--propagation", "private", "sh", "-c", &script])
}

fn bundle(name: &str) -> anyhow::Result<TempDir> {
    let dir = tempfile::Builder::new().prefix(&format!("sandbank-bench-{name}-")).tempdir()?;
    // The user namespace's root must be able to reach it.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let rootfs = dir.path().join("rootfs");
    host_root::make(&rootfs)?;
    let workspace = dir.path().join("workspace");
    fs::create_dir(&workspace)?;
    let id = FIRST_ID + host_root::USER;
    std::os::unix::fs::chown(&workspace, Some(id), Some(id))?;
    let config = config(&rootfs, &workspace);
    fs::write(dir.path().join("config.json"), config.to_string())?;
    Ok(dir)
}

fn config(rootfs: &Path, workspace: &Path) -> Value {
    let ids = json!([{ "containerID": 0, "hostID": FIRST_ID, "size": IDS }]);
    let namespaces = ["user", "mount", "pid", "network", "uts", "ipc", "cgroup"];
    let namespaces: Vec<Value> = namespaces.iter().map(|kind| json!({ "type": kind })).collect();
    json!({
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": { "path": rootfs, "readonly": true },
        "process": {
            "terminal": false,
            "user": { "uid": host_root::USER, "gid": host_root::USER },
            "args": ["cat"],
            "env": ["PATH=/usr/bin:/bin", format!("HOME={WORKSPACE}")],
            "cwd": WORKSPACE,
            "noNewPrivileges": true,
            "capabilities": { "bounding": [], "effective": [], "permitted": [] },
        },
        "mounts": [
            bind(Path::new("/usr"), "/usr", "ro"),
            bind(workspace, WORKSPACE, "rw"),
            mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
            mount("/dev", "tmpfs", &["nosuid", "mode=755", "size=65536k"]),
            mount("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666"]),
            mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777"]),
            mount("/tmp", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
            mount("/run", "tmpfs", &["nosuid", "nodev"]),
        ],
        "linux": {
            "namespaces": namespaces,
            "uidMappings": ids,
            "gidMappings": ids,
            "resources": {
                "memory": { "limit": MEMORY_BYTES },
                "cpu": { "quota": CPU_QUOTA, "period": CPU_PERIOD },
                "pids": { "limit": PIDS },
            },
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
        },
    })
}

fn bind(source: &Path, destination: &str, mode: &str) -> Value {
    let options = ["rbind", "nosuid", "nodev", mode];
    json!({ "destination": destination, "type": "bind", "source": source, "options": options })
}

fn mount(destination: &str, kind: &str, options: &[&str]) -> Value {
    json!({ "destination": destination, "type": kind, "source": kind, "options": options })
}
