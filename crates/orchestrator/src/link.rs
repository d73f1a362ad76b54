//! The channel to one sandbox's runner: made when first needed, kept, made again when it broke.

use std::sync::Arc;

use sandbank_channel::RunnerClient;
use sandbank_engine::{Engine, SandboxId};
use tokio::sync::{Mutex, mpsc};

use crate::OrchestratorError;
use crate::sandbox::Message;

pub(crate) struct Link {
    id: SandboxId,
    engine: Arc<dyn Engine>,
    /// Is told when the runner is another one than before.
    mailbox: mpsc::UnboundedSender<Message>,
    /// Held while connecting, so that callers share one attempt.
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    channel: Option<Channel>,
    serial: u64,
    /// Of the runner that was last reached.
    epoch: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Channel {
    pub(crate) client: RunnerClient,
    /// Tells this connection from the one before.
    pub(crate) serial: u64,
}

impl Link {
    pub(crate) fn new(
        id: SandboxId,
        engine: Arc<dyn Engine>,
        mailbox: mpsc::UnboundedSender<Message>,
    ) -> Self {
        Self { id, engine, mailbox, state: Mutex::default() }
    }

    pub(crate) async fn channel(&self) -> Result<Channel, OrchestratorError> {
        self.channel_after(0).await
    }

    /// A channel newer than `broken`, for a caller who could not use that one.
    pub(crate) async fn channel_after(&self, broken: u64) -> Result<Channel, OrchestratorError> {
        let mut state = self.state.lock().await;
        if let Some(channel) = &state.channel
            && channel.serial > broken
            && !channel.client.is_closed()
        {
            return Ok(channel.clone());
        }
        state.channel = None;
        let stream = self.engine.connect(&self.id).await?;
        let (client, hello) = RunnerClient::connect(stream).await?;
        let before = state.epoch.replace(hello.epoch.clone());
        if before.is_some_and(|epoch| epoch != hello.epoch) {
            let _ = self.mailbox.send(Message::RunnerRestarted);
        }
        state.serial += 1;
        let channel = Channel { client, serial: state.serial };
        state.channel = Some(channel.clone());
        Ok(channel)
    }

    /// Lets go of the channel; callers that still hold its client keep it.
    pub(crate) async fn close(&self) {
        self.state.lock().await.channel = None;
    }
}
