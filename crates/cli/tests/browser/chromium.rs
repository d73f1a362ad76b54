//! A real browser, without a window, which is ended when dropped.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

const PROGRAM: &str = "/usr/bin/chromium";

pub(crate) struct Chromium {
    child: Child,
    _profile: tempfile::TempDir,
}

/// None, with a counted reason, where there is none.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::var_os("SANDBANK_TEST_CHROMIUM").map_or(PROGRAM.into(), PathBuf::from);
    if !program.exists() {
        println!("skipped: there is no {}; see scripts/setup.sh --test", program.display());
        return None;
    }
    Some(program)
}

impl Chromium {
    /// `host` is this machine for it.
    pub(crate) fn open(program: &PathBuf, url: &str, host: &str) -> anyhow::Result<Self> {
        let profile = tempfile::Builder::new().prefix("sandbank-test-browser-").tempdir()?;
        let child = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--no-proxy-server", "--disable-background-networking"])
            .arg(format!("--host-resolver-rules=MAP {host} 127.0.0.1"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // It starts a crowd of its own.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, _profile: profile })
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
