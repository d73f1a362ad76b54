//! The `docker` program, spoken to as a person does it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::PROGRAMS;
use crate::peers::host_root::{CPU_PERIOD, CPU_QUOTA, MEMORY_BYTES, PIDS, USER, WORKSPACE};
use crate::peers::process;

pub(crate) struct Cli {
    program: PathBuf,
    socket: PathBuf,
    /// Where it finds no configuration of the caller's.
    home: PathBuf,
}

impl Cli {
    /// The error is a reason to do without it.
    pub(super) fn find(socket: &Path, home: &Path) -> Result<Self, String> {
        let missing = "there is no docker program here (Debian: apt-get install docker.io)";
        let program = process::find("docker").ok_or(missing)?;
        Ok(Self { program, socket: socket.to_owned(), home: home.to_owned() })
    }

    /// Runs `cat` in a new container, which goes when its input ends. The container is the one that
    /// the API is asked for as well.
    pub(crate) fn run(&self) -> Command {
        let mut command = self.command();
        command
            .args(["run", "--rm", "--interactive", "--network", "none", "--log-driver", "none"])
            .args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"])
            .args(["--tmpfs", "/tmp", "--volume", WORKSPACE, "--workdir", WORKSPACE])
            .args(["--user", &USER.to_string(), "--pids-limit", &PIDS.to_string()])
            .args(["--memory", &MEMORY_BYTES.to_string()])
            .args(["--cpu-period", &CPU_PERIOD.to_string()])
            .args(["--cpu-quota", &CPU_QUOTA.to_string()])
            .args([PROGRAMS, "cat"]);
        command
    }

    pub(crate) fn exec(&self, container: &str, argv: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["exec", container]).args(argv);
        command
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", &self.home).env("PATH", "/usr/bin:/bin");
        command.arg("--host").arg(format!("unix://{}", self.socket.display()));
        command
    }
}
