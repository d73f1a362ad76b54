//! bubblewrap, given the same namespaces and a like file system as a sandbox of the `host` image.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::process;

const WORKSPACE: &str = sandbank_protocol::WORKSPACE;

/// Where programs and libraries are on a merged-usr system, and real directories elsewhere.
const SYSTEM_DIRS: [&str; 5] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"];

pub(crate) struct Bwrap {
    program: PathBuf,
    pub(crate) version: String,
    /// Made once; what is measured is the start, not the construction of a command line.
    options: Vec<String>,
    /// Mounted as its workspace.
    _workspace: tempfile::TempDir,
}

impl Bwrap {
    /// The inner error is a reason to do without it.
    pub(crate) fn find() -> anyhow::Result<Result<Self, String>> {
        let Some(program) = process::find("bwrap") else {
            return Ok(
                Err("there is no bwrap in PATH (Debian: apt-get install bubblewrap)".into()),
            );
        };
        let version = Command::new(&program).arg("--version").output()?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let workspace = tempfile::Builder::new().prefix("sandbank-bench-bwrap-").tempdir()?;
        let options = options(workspace.path());
        let bwrap = Self { program, version, options, _workspace: workspace };
        let probe = bwrap.command(&["true"]).output()?;
        if probe.status.success() {
            return Ok(Ok(bwrap));
        }
        let complaint = String::from_utf8_lossy(&probe.stderr);
        let complaint = complaint.lines().next().unwrap_or("no reason given");
        Ok(Err(format!("it does not run here: {complaint}")))
    }

    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.options).arg("--").args(argv);
        command
    }
}

fn options(workspace: &Path) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| options.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000"]);
    add(&["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "sandbox"]);
    add(&["--ro-bind", "/usr", "/usr"]);
    for dir in SYSTEM_DIRS {
        match std::fs::read_link(dir) {
            Ok(target) => add(&["--symlink", &target.to_string_lossy(), dir]),
            Err(_) if Path::new(dir).is_dir() => add(&["--ro-bind", dir, dir]),
            Err(_) => {}
        }
    }
    add(&["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]);
    add(&["--ro-bind-try", "/etc/passwd", "/etc/passwd"]);
    add(&["--ro-bind-try", "/etc/ssl/certs", "/etc/ssl/certs"]);
    add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]);
    add(&["--bind", &workspace.to_string_lossy(), WORKSPACE, "--chdir", WORKSPACE]);
    add(&["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", WORKSPACE]);
    options
}
