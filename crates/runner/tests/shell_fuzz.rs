//! Generated scripts, with the runner as a plain process.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod fuzzing;
mod live_runner;
mod plain_bash;
mod remembering;

mod grounds {
    use std::path::PathBuf;

    use sandbank_channel::RunnerClient;

    use crate::live_runner::LiveRunner;

    pub(crate) struct Grounds;

    pub(crate) struct Ground {
        _runner: LiveRunner,
        pub(crate) client: RunnerClient,
        pub(crate) number: u64,
        /// The workspace, for commands and for this process.
        pub(crate) inside: PathBuf,
        pub(crate) seen: PathBuf,
    }

    impl Grounds {
        pub(crate) async fn start() -> Option<Self> {
            Some(Self)
        }

        /// A runner for each.
        pub(crate) async fn next(&mut self) -> Ground {
            let runner = LiveRunner::start();
            let (client, inside) = (runner.client().await, runner.inside(""));
            Ground { _runner: runner, client, number: 0, seen: inside.clone(), inside }
        }

        pub(crate) async fn finish(self) {}
    }
}
