//! A caller's hold on a sandbox, with a client of its runner.

use std::ops::Deref;
use std::time::Duration;

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::SandboxId;
use sandbank_protocol::{CommandSpec, Started};

use crate::link::Channel;
use crate::sandbox::{Hold, Message, SharedSandbox};
use crate::{Cause, OrchestratorError};

/// The runner's client. While this lives the sandbox counts as busy; letting go of it starts the
/// idle time anew.
pub struct Attached {
    channel: Channel,
    sandbox: SharedSandbox,
    _hold: Hold,
}

impl Deref for Attached {
    type Target = RunnerClient;

    fn deref(&self) -> &RunnerClient {
        &self.channel.client
    }
}

impl Attached {
    pub(crate) async fn to(sandbox: SharedSandbox) -> Result<Self, OrchestratorError> {
        let hold = sandbox.hold().await?;
        let channel = sandbox.channel_after(0).await?;
        Ok(Self { channel, sandbox, _hold: hold })
    }

    pub fn sandbox_id(&self) -> &SandboxId {
        self.sandbox.id()
    }

    /// Makes an idempotent call, once more over a new channel when the first one broke. The call
    /// is given a client of its own, because a borrowed one could not be shown to be `Send`.
    pub async fn run<T, F, A>(&self, call: F) -> Result<T, OrchestratorError>
    where
        F: Fn(RunnerClient) -> A,
        A: Future<Output = Result<T, ChannelError>>,
    {
        match call(self.channel.client.clone()).await {
            Err(error) if error.is_broken() => {
                let channel = self.sandbox.channel_after(self.channel.serial).await?;
                Ok(call(channel.client).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Starts a command and counts it as running at once. Safe to repeat, since a command's id
    /// makes a second start attach to the first.
    pub async fn start(&self, spec: &CommandSpec) -> Result<Started, OrchestratorError> {
        let started = self.run(|client| async move { client.start(spec).await }).await?;
        self.note(spec, &started);
        Ok(started)
    }

    /// [`Self::start`], and stays for the ending, at most for `patience`. Meanwhile it is this
    /// hold that makes the sandbox busy; a caller that goes away has the runner looked at soon.
    pub async fn start_and_wait(
        &self,
        spec: &CommandSpec,
        patience: Duration,
    ) -> Result<Started, OrchestratorError> {
        let call =
            |client: RunnerClient| async move { client.start_and_wait(spec, patience).await };
        let started = self.run(call).await?;
        self.note(spec, &started);
        Ok(started)
    }

    fn note(&self, spec: &CommandSpec, started: &Started) {
        if !started.attached {
            if let Some(shell) = &spec.shell {
                self.sandbox.scripts.note(&shell.name, &spec.id);
            }
            let status = Box::new(started.status.clone());
            let _ = self.sandbox.mailbox.send(Message::CommandStarted(status));
        }
    }

    /// Resolves when the sandbox is ending or has ended, with the cause: streams of it are over.
    pub async fn ended(&self) -> Cause {
        self.sandbox.ending().await
    }
}
