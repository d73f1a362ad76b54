//! The torture of shells, each in a container of this machine's own programs.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

#[path = "../../runner/tests/commanding/mod.rs"]
mod commanding;
#[path = "../../runner/tests/remembering/mod.rs"]
mod remembering;
#[path = "../../runner/tests/torture/mod.rs"]
mod torture;

mod place {
    use sandbank_channel::RunnerClient;
    use sandbank_engine::SandboxId;
    use sandbank_test_support::{PrivateDocker, SUITE_IMAGE, import_suite};

    use crate::support::TestEngine;
    pub(crate) use crate::support::wait_for;

    pub(crate) struct Place(TestEngine, SandboxId);

    impl Place {
        pub(crate) async fn start() -> Option<Self> {
            let docker = PrivateDocker::shared(import_suite).unwrap()?;
            let test = TestEngine::on(docker, |_| {}).await?;
            let id = test.create_with(|spec| {
                spec.image = SUITE_IMAGE.parse().unwrap();
                spec.limits.pids = 512;
                spec.limits.memory_bytes = 512 << 20;
            });
            let id = id.await.id;
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
