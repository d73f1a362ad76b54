//! Generated scripts, in containers of this machine's own programs.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

#[path = "../../runner/tests/commanding/mod.rs"]
mod commanding;
#[path = "../../runner/tests/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../runner/tests/plain_bash/mod.rs"]
mod plain_bash;
#[path = "../../runner/tests/remembering/mod.rs"]
mod remembering;

mod grounds {
    use std::path::PathBuf;

    use sandbank_channel::RunnerClient;
    use sandbank_engine::{Engine, SandboxId};
    use sandbank_test_support::{PrivateDocker, SUITE_IMAGE, import_suite};

    use crate::support::TestEngine;

    /// A sandbox has at most 32 shells, and each ground needs one of its own.
    const PER_MACHINE: u64 = 25;
    const WORKSPACE: &str = "/vercel/sandbox/workspace";

    pub(crate) struct Grounds {
        test: TestEngine,
        next: u64,
        machine: Option<(SandboxId, RunnerClient)>,
    }

    pub(crate) struct Ground {
        pub(crate) client: RunnerClient,
        pub(crate) number: u64,
        /// The workspace, for commands and for this process.
        pub(crate) inside: PathBuf,
        pub(crate) seen: PathBuf,
    }

    impl Grounds {
        pub(crate) async fn start() -> Option<Self> {
            let docker = PrivateDocker::shared(import_suite).unwrap()?;
            let test = TestEngine::on(docker, |_| {}).await?;
            Some(Self { test, next: 0, machine: None })
        }

        pub(crate) async fn next(&mut self) -> Ground {
            if self.next.is_multiple_of(PER_MACHINE) {
                if let Some((old, _)) = self.machine.take() {
                    self.test.engine.destroy(&old).await.unwrap();
                }
                let made = self.test.create_with(|spec| {
                    spec.image = SUITE_IMAGE.parse().unwrap();
                    spec.limits.pids = 512;
                    spec.limits.memory_bytes = 512 << 20;
                });
                let id = made.await.id;
                let client = self.test.client(&id).await;
                self.machine = Some((id, client));
            }
            self.next += 1;
            let (id, client) = self.machine.as_ref().unwrap();
            let volume = format!("data/volumes/sandbank-{id}-workspace/_data");
            Ground {
                client: client.clone(),
                number: self.next,
                inside: WORKSPACE.into(),
                seen: self.test.docker.dir().join(volume),
            }
        }

        pub(crate) async fn finish(self) {
            self.test.finish().await;
        }
    }
}
