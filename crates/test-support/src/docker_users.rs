//! Whose users the containers of a [`PrivateDocker`] have: by default those of the host, else those
//! of a user of the tests' own, whom only its mount namespace knows.
//!
//! [`PrivateDocker`]: crate::PrivateDocker

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::docker::find;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    Hosts,
    /// The daemon is root, and maps those of containers.
    Mapped,
    /// The daemon itself is somebody else.
    Rootless,
}

const NAME: &str = "sandbank-test";
/// Nobody in particular.
const ID: u32 = 4242;
/// Of the subordinate ids.
const FIRST: u32 = 4_200_000;

/// The script that comes with Docker, where Debian puts it.
const SCRIPT: &str = "dockerd-rootless.sh";
const CONTRIBUTED: &str = "/usr/share/docker.io/contrib";

impl Users {
    /// What is not here and would be needed, and why.
    pub(crate) fn missing(self) -> Option<String> {
        let programs: &[&str] = match self {
            Self::Hosts | Self::Mapped => &[],
            Self::Rootless => &["rootlesskit", "newuidmap", "slirp4netns", "setpriv"],
        };
        let program = programs.iter().find(|program| find(program).is_none());
        if let Some(program) = program {
            return Some(format!("there is no {program} here; see scripts/setup.sh --test"));
        }
        let unknown =
            ["/etc/subuid", "/etc/subgid"].into_iter().find(|file| !Path::new(file).exists());
        match self {
            Self::Hosts => None,
            _ if unknown.is_some() => unknown.map(|file| format!("there is no {file} here")),
            Self::Rootless if script().is_none() => Some(format!("there is no {SCRIPT} here")),
            Self::Rootless if !Path::new("/dev/net").exists() => {
                Some("there is no /dev/net here".to_owned())
            }
            _ => None,
        }
    }

    pub(crate) fn mapped(self, user: u32) -> Option<u32> {
        (self == Self::Mapped).then_some(FIRST + user)
    }

    /// Of `dockerd`.
    pub(crate) fn option(self) -> Option<String> {
        (self == Self::Mapped).then(|| format!("--userns-remap={NAME}"))
    }

    /// What the daemon needs in its namespaces, as a script of `sh`. `/run` is theirs alone.
    pub(crate) fn preparation(self, dir: &Path) -> Option<String> {
        let known = format!(
            "set -e; for file in passwd group subuid subgid; do cp /etc/$file /run/$file; \
             mount --bind /run/$file /etc/$file; done; \
             echo {NAME}:x:{ID}:{ID}::/nonexistent:/bin/false >> /etc/passwd; \
             echo {NAME}:x:{ID}: >> /etc/group; \
             echo {NAME}:{FIRST}:65536 | tee -a /etc/subuid >> /etc/subgid"
        );
        // Everybody may open it on other machines.
        let tunnel = "mount -t tmpfs tmpfs /dev/net; mknod -m 666 /dev/net/tun c 10 200";
        // RootlessKit writes to this one, whatever the environment says.
        let dir = dir.display();
        let temporary = format!(
            "mkdir /run/dir; mount --bind {dir} /run/dir; mount -t tmpfs -o mode=1777 tmpfs /tmp; \
             mkdir -p {dir}; mount --move /run/dir {dir}"
        );
        match self {
            Self::Hosts => None,
            Self::Mapped => Some(known),
            Self::Rootless => Some(format!("{known}; {tunnel}; {temporary}")),
        }
    }

    /// The daemon without its options. `enter` is a program in its namespaces.
    pub(crate) fn daemon(
        self,
        dir: &Path,
        enter: impl FnOnce(&str) -> anyhow::Result<Command>,
    ) -> anyhow::Result<Command> {
        if self != Self::Rootless {
            return enter("dockerd");
        }
        std::os::unix::fs::chown(dir, Some(ID), Some(ID))?;
        let mut command = enter("setpriv")?;
        let id = ID.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "env", "-i"]);
        for name in ["HOME", "XDG_RUNTIME_DIR"] {
            command.arg(format!("{name}={}", dir.display()));
        }
        command.arg(format!("USER={NAME}")).arg("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
        command.arg(script().with_context(|| format!("there is no {SCRIPT} here"))?);
        Ok(command)
    }
}

fn script() -> Option<PathBuf> {
    let contributed = Path::new(CONTRIBUTED).join(SCRIPT);
    find(SCRIPT).or_else(|| contributed.is_file().then_some(contributed))
}
