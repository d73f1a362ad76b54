//! The torture of shells, with the runner as a plain process.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;
mod remembering;
mod torture;

mod place {
    use sandbank_channel::RunnerClient;

    use crate::live_runner::LiveRunner;
    pub(crate) use crate::live_runner::wait_for;

    pub(crate) struct Place(LiveRunner);

    impl Place {
        pub(crate) async fn start() -> Option<Self> {
            Some(Self(LiveRunner::start()))
        }

        pub(crate) async fn client(&self) -> RunnerClient {
            self.0.client().await
        }

        pub(crate) async fn finish(self) {}
    }
}
