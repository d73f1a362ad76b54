//! The torture of shells, each in a machine of the native engine.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

#[path = "../../runner/tests/commanding/mod.rs"]
mod commanding;
#[path = "../../runner/tests/remembering/mod.rs"]
mod remembering;
#[path = "../../runner/tests/torture/mod.rs"]
mod torture;

sandbank_engine_native::spawner_entry!();

mod place {
    use sandbank_channel::RunnerClient;
    use sandbank_engine::SandboxId;

    pub(crate) use crate::support::wait_for;
    use crate::support::{TestEngine, cannot_run};

    pub(crate) struct Place(TestEngine, SandboxId);

    impl Place {
        pub(crate) async fn start() -> Option<Self> {
            if cannot_run() {
                return None;
            }
            let test = TestEngine::start().await;
            let id = test.create_with(|spec| spec.limits.pids = 512).await.id;
            Some(Self(test, id))
        }

        pub(crate) async fn client(&self) -> RunnerClient {
            self.0.client(&self.1).await
        }

        pub(crate) async fn finish(self) {
            self.0.finish().await;
        }
    }
}
