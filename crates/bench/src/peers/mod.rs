//! What Sandbank is measured against, on the same machine and in the same run.

pub(crate) mod bwrap;
pub(crate) mod docker;
mod host_root;
pub(crate) mod live;
pub(crate) mod loopback;
pub(crate) mod oci;
pub(crate) mod process;

use std::time::Duration;

use crate::report::{Contender, SUBJECT, Skipped};
use bwrap::Bwrap;
use docker::{Docker, Kind};
use oci::OciRuntime;

pub(crate) const PROCESS: &str = "bare process";
pub(crate) const BWRAP: &str = "bwrap";
pub(crate) const CRUN: &str = "crun";
pub(crate) const RUNC: &str = "runc";
pub(crate) const DOCKER: &str = "Docker";

/// Everybody that may be here, in the order of the reports.
pub(crate) const NAMES: [&str; 5] = [BWRAP, CRUN, RUNC, DOCKER, PROCESS];

pub(crate) struct Peers {
    bwrap: Option<Bwrap>,
    runtimes: Vec<OciRuntime>,
    docker: Option<Docker>,
    pub(crate) skipped: Vec<Skipped>,
}

/// One that takes part.
#[derive(Clone, Copy)]
pub(crate) enum Peer<'a> {
    Bwrap(&'a Bwrap),
    Oci(&'a OciRuntime),
    Docker(&'a Docker),
    Process,
}

/// From nothing to ready, and from there to nothing.
pub(crate) struct Cycle {
    pub(crate) ready: Duration,
    pub(crate) gone: Duration,
}

impl Peers {
    pub(crate) async fn find() -> anyhow::Result<Self> {
        let mut skipped = Vec::new();
        let mut skip = |name: &str, reason: String| {
            skipped.push(Skipped { name: name.to_owned(), reason });
        };
        let bwrap = Bwrap::find()?.map_err(|reason| skip(BWRAP, reason)).ok();
        let mut runtimes = Vec::new();
        for name in [CRUN, RUNC] {
            let found = blocking(move || OciRuntime::find(name)).await?;
            runtimes.extend(found.map_err(|reason| skip(name, reason)).ok());
        }
        let docker = Docker::find().await?.map_err(|reason| skip(DOCKER, reason)).ok();
        Ok(Self { bwrap, runtimes, docker, skipped })
    }

    pub(crate) fn all(&self) -> Vec<Peer<'_>> {
        let mut all: Vec<Peer<'_>> = self.bwrap.iter().map(Peer::Bwrap).collect();
        all.extend(self.runtimes.iter().map(Peer::Oci));
        all.extend(self.docker.iter().map(Peer::Docker));
        all.push(Peer::Process);
        all
    }

    pub(crate) fn docker(&self) -> Option<&Docker> {
        self.docker.as_ref()
    }

    pub(crate) fn contenders(&self) -> Vec<Contender> {
        let contender = |name: &str, what: String| Contender { name: name.into(), what };
        let mut contenders = vec![contender(
            SUBJECT,
            "the native engine through HTTP on loopback: user, mount, pid, network, uts, ipc and \
             cgroup namespaces, cgroup limits, seccomp, Landlock, a workspace of its own, a row in \
             the database; image `host`, network `none`"
                .to_owned(),
        )];
        contenders.extend(self.all().iter().map(|peer| contender(peer.name(), peer.describe())));
        contenders
    }

    /// Ends what was started for the run.
    pub(crate) async fn finish(self) -> anyhow::Result<()> {
        match self.docker {
            Some(docker) => docker.finish().await,
            None => Ok(()),
        }
    }
}

impl Peer<'_> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Bwrap(_) => BWRAP,
            Self::Oci(runtime) => runtime.name,
            Self::Docker(_) => DOCKER,
            Self::Process => PROCESS,
        }
    }

    /// Whether it is so slow that it sits out most rounds.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self, Self::Docker(_))
    }

    fn describe(&self) -> String {
        match self {
            Self::Bwrap(bwrap) => format!(
                "{}: the same namespaces, read-only `/usr`, own `/proc`, `/dev`, `/tmp` and workspace, \
                 no capabilities; no cgroup limits, no seccomp, no Landlock, no quota, nothing that \
                 answers requests",
                bwrap.version
            ),
            Self::Oci(runtime) => format!(
                "{}: the same namespaces and mounts, cgroup limits for memory, cpu and processes, no \
                 capabilities; no seccomp, no Landlock, no quota, nothing that answers requests{}",
                runtime.version,
                match runtime.is_entered() {
                    true =>
                        ". It refuses this machine's hybrid cgroups, so it is started by `nsenter` \
                             in a mount namespace without v2, which costs it about a millisecond",
                    false => "",
                }
            ),
            Self::Docker(docker) => format!(
                "{}, its HTTP API on the socket of a private daemon: mount, pid, network, uts and ipc \
                 namespaces, the same `/usr` and cgroup limits, its own seccomp profile, no \
                 capabilities, network `none`, no logs; no user namespace, no Landlock, no quota",
                docker.version
            ),
            Self::Process => {
                "the same program started by posix_spawn on the host: no isolation at all"
                    .to_owned()
            }
        }
    }

    /// Makes one and ends it. All but Docker run `cat` and are ready when a byte sent to it has
    /// come back; a Docker container is ready when its start is answered.
    pub(crate) async fn cycle(&self) -> anyhow::Result<Cycle> {
        match self {
            Self::Docker(docker) => docker.cycle(Kind::Host).await,
            Self::Oci(runtime) => {
                // Killing `run` would leave the container behind: it ends when its input does.
                let (_, command) = runtime.run_command();
                until_input_ends(command).await
            }
            Self::Bwrap(bwrap) => until_killed(bwrap.command(&["cat"])).await,
            Self::Process => until_killed(process::bare(&["cat"])?).await,
        }
    }
}

pub(crate) async fn until_input_ends(mut command: std::process::Command) -> anyhow::Result<Cycle> {
    blocking(move || {
        let peer = process::start(&mut command)?;
        Ok(Cycle { ready: peer.took, gone: peer.end_input()? })
    })
    .await
}

async fn until_killed(mut command: std::process::Command) -> anyhow::Result<Cycle> {
    blocking(move || {
        let peer = process::start(&mut command)?;
        Ok(Cycle { ready: peer.took, gone: peer.end()? })
    })
    .await
}

/// Runs something that blocks without holding up the runtime; its own timing excludes the detour.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}
