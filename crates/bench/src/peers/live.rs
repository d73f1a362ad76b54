//! A peer's container that is there already when a command comes. Peers without such a thing make
//! a new sandbox for each command.

use std::process::Command;
use std::time::{Duration, Instant};

use super::docker::Kind;
use super::oci::Container;
use super::{Peer, blocking, process};

pub(crate) struct Live<'a> {
    pub(crate) peer: Peer<'a>,
    /// Held until its end.
    container: Option<Container>,
    /// Empty where there is none.
    id: String,
}

impl<'a> Live<'a> {
    pub(crate) async fn start(peer: Peer<'a>) -> anyhow::Result<Self> {
        let (id, container) = match peer {
            Peer::Docker(docker) => (docker.create(Kind::Host).await?, None),
            Peer::Oci(runtime) => {
                let container = runtime.start()?;
                (container.id.clone(), Some(container))
            }
            Peer::Bwrap(_) | Peer::Process => (String::new(), None),
        };
        Ok(Self { peer, container, id })
    }

    /// Start to exit of a program that must succeed.
    pub(crate) async fn run(&self, argv: &[&str]) -> anyhow::Result<Duration> {
        match self.command(argv)? {
            Some(mut command) => blocking(move || process::run(&mut command)).await,
            None => Ok(self.exec(argv).await?.1),
        }
    }

    /// Length of all the output, and how long it took to read it.
    pub(crate) async fn drain(&self, argv: &[&str]) -> anyhow::Result<(u64, Duration)> {
        match self.command(argv)? {
            Some(mut command) => blocking(move || process::drain(&mut command)).await,
            None => self.exec(argv).await,
        }
    }

    /// The command line that does it; none for Docker, which has an API.
    fn command(&self, argv: &[&str]) -> anyhow::Result<Option<Command>> {
        Ok(match self.peer {
            Peer::Docker(_) => None,
            Peer::Oci(runtime) => Some(runtime.exec(&self.id, argv)),
            Peer::Bwrap(bwrap) => Some(bwrap.command(argv)),
            Peer::Process => Some(process::bare(argv)?),
        })
    }

    async fn exec(&self, argv: &[&str]) -> anyhow::Result<(u64, Duration)> {
        let Peer::Docker(docker) = self.peer else { anyhow::bail!("only Docker has an exec API") };
        let begin = Instant::now();
        let length = docker.exec(&self.id, argv).await?;
        Ok((length, begin.elapsed()))
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        if let Peer::Docker(docker) = self.peer {
            docker.remove(&self.id).await?;
        }
        match self.container {
            Some(container) => blocking(move || container.ready.end_input()).await.map(drop),
            None => Ok(()),
        }
    }
}
