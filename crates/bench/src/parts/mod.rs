//! The parts of a run. Inside each, contenders take turns in an order that rotates from round to
//! round, so that a slow minute of the machine hits all of them.

mod at_once;
mod command;
mod create;
mod density;
mod docker;
mod files;
mod growth;
mod pause;
mod pty;
mod search;
mod shell;
mod stream;
mod terminal;
mod throughput;
mod tools;
mod tree;
mod typing;
mod workspace;

use std::path::Path;
use std::time::Instant;

use crate::api::Api;
use crate::daemon::PrivateDaemon;
use crate::limits;
use crate::options::{Part, Scale};
use crate::peers::Peers;
use crate::progress::Progress;
use crate::report::Section;

pub(crate) struct Run<'a> {
    pub(crate) scale: Scale,
    /// The `sandbank` that is measured.
    pub(crate) binary: &'a Path,
    pub(crate) daemon: &'a PrivateDaemon,
    /// The one whose sandboxes are containers of the private Docker daemon, or why there is none.
    pub(crate) on_docker: Result<&'a PrivateDaemon, &'a str>,
    pub(crate) peers: &'a Peers,
    pub(crate) progress: &'a Progress,
}

impl Run<'_> {
    pub(crate) fn api(&self) -> &Api {
        &self.daemon.api
    }

    /// Rounds whose samples are thrown away, and all rounds, of contenders that take turns with
    /// several samples in a row.
    fn rounds_of_several(&self) -> (usize, usize) {
        let warm_up = self.scale.warm_up.div_ceil(self.scale.in_a_row);
        (warm_up, warm_up + self.scale.rounds.div_ceil(self.scale.in_a_row))
    }

    /// Whether peers that take long have a turn in this round, too, counted from the first that
    /// is kept, which is one.
    fn slow_take_part(&self, round: usize) -> bool {
        round.is_multiple_of(self.scale.slow_every)
    }

    /// Waits until the pool has all its machines.
    async fn fill_pool(&self) -> anyhow::Result<()> {
        fill_pool(self.api()).await
    }

    pub(crate) async fn measure(&self, part: Part) -> anyhow::Result<Section> {
        match part {
            Part::Create => create::measure(self).await,
            Part::Command => command::measure(self).await,
            Part::Shell => shell::measure(self).await,
            Part::Docker => docker::measure(self).await,
            Part::Stream => stream::measure(self).await,
            Part::Files => files::measure(self).await,
            Part::Tree => tree::measure(self).await,
            Part::Search => search::measure(self).await,
            Part::Workspace => workspace::measure(self).await,
            Part::Terminal => terminal::measure(self).await,
            Part::Pty => pty::measure(self).await,
            Part::Tools => tools::measure(self).await,
            Part::Pause => pause::measure(self).await,
            Part::Throughput => throughput::measure(self).await,
            Part::AtOnce => at_once::measure(self).await,
            Part::Growth => growth::measure(self).await,
            Part::Density => density::measure(self).await,
        }
    }
}

/// Waits until that daemon's pool has all its machines.
async fn fill_pool(api: &Api) -> anyhow::Result<()> {
    let deadline = Instant::now() + limits::POOL_FILL;
    while !api.pool_is_full().await? {
        anyhow::ensure!(Instant::now() < deadline, "the pool is not full yet");
        tokio::time::sleep(limits::POLL).await;
    }
    Ok(())
}

/// Why a quick run has nothing cold.
fn cold_left_out() -> Result<(), String> {
    Err("a quick run does not empty the machine's caches".to_owned())
}

/// Everybody once, beginning with another one each turn. Callers count turns from the first one
/// that is kept, so that reports list contenders in their own order.
fn turns<T>(contenders: &[T], turn: usize) -> impl Iterator<Item = &T> {
    let count = contenders.len().max(1);
    contenders.iter().cycle().skip(turn % count).take(contenders.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_in_every_round_and_the_first_turn_goes_round() {
        let order = |round| turns(&['a', 'b', 'c'], round).collect::<String>();
        assert_eq!([order(0), order(1), order(2), order(3)], ["abc", "bca", "cab", "abc"]);
        assert_eq!(turns::<char>(&[], 5).count(), 0);
    }
}
