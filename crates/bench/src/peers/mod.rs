//! What Sandbank is measured against, on the same machine and in the same run.

pub(crate) mod bwrap;
pub(crate) mod loopback;
pub(crate) mod process;

use crate::report::{Contender, SUBJECT, Skipped};
use bwrap::Bwrap;

pub(crate) const PROCESS: &str = "bare process";
pub(crate) const BWRAP: &str = "bwrap";

pub(crate) struct Peers {
    pub(crate) bwrap: Option<Bwrap>,
    pub(crate) skipped: Vec<Skipped>,
}

impl Peers {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let mut skipped = vec![Skipped {
            name: "Docker, runc, crun, gVisor".to_owned(),
            reason: "this version of the tool does not measure them".to_owned(),
        }];
        let bwrap = match Bwrap::find()? {
            Ok(bwrap) => Some(bwrap),
            Err(reason) => {
                skipped.push(Skipped { name: BWRAP.to_owned(), reason });
                None
            }
        };
        Ok(Self { bwrap, skipped })
    }

    pub(crate) fn contenders(&self) -> Vec<Contender> {
        let contender = |name: &str, what: &str| Contender { name: name.into(), what: what.into() };
        let mut contenders = vec![
            contender(
                SUBJECT,
                "the native engine through HTTP on loopback: user, mount, pid, network, uts, ipc and \
                 cgroup namespaces, cgroup limits, seccomp, Landlock, a workspace of its own, a row in \
                 the database; image `host`, network `none`",
            ),
            contender(
                PROCESS,
                "the same program started by posix_spawn on the host: no isolation at all",
            ),
        ];
        if let Some(bwrap) = &self.bwrap {
            let what = format!(
                "{}: the same namespaces, read-only `/usr`, own `/proc`, `/dev`, `/tmp` and workspace, \
                 no capabilities; no cgroup limits, no seccomp, no Landlock, no quota, nothing that \
                 answers requests",
                bwrap.version
            );
            contenders.push(Contender { name: BWRAP.to_owned(), what });
        }
        contenders
    }
}

/// Runs something that blocks without holding up the runtime; its own timing excludes the detour.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}
