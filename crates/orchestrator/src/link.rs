//! The channel to one sandbox's runner: made when first needed, kept, made again when it broke.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Attempts to connect that are over.
    attempts: AtomicU64,
}

#[derive(Default)]
struct LinkState {
    channel: Option<Channel>,
    serial: u64,
    /// Of the runner that was last reached.
    epoch: Option<String>,
    /// The last attempt that failed, by its number.
    failure: Option<(u64, OrchestratorError)>,
}

#[derive(Clone)]
pub(crate) struct Channel {
    pub(crate) client: RunnerClient,
    /// Tells this connection from the one before.
    pub(crate) serial: u64,
}

/// A runner that has answered.
#[derive(Clone)]
pub(crate) struct Reached {
    pub(crate) client: RunnerClient,
    pub(crate) epoch: String,
}

impl Link {
    /// With `reached` it is open from the beginning.
    pub(crate) fn new(
        id: SandboxId,
        engine: Arc<dyn Engine>,
        mailbox: mpsc::UnboundedSender<Message>,
        reached: Option<Reached>,
    ) -> Self {
        let state = reached.map(|Reached { client, epoch }| LinkState {
            channel: Some(Channel { client, serial: 1 }),
            serial: 1,
            epoch: Some(epoch),
            failure: None,
        });
        let state = Mutex::new(state.unwrap_or_default());
        Self { id, engine, mailbox, state, attempts: AtomicU64::new(0) }
    }

    pub(crate) async fn channel(&self) -> Result<Channel, OrchestratorError> {
        self.channel_after(0).await
    }

    /// A channel newer than `broken`, for a caller who could not use that one.
    pub(crate) async fn channel_after(&self, broken: u64) -> Result<Channel, OrchestratorError> {
        let over_before = self.attempts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if let Some(channel) = &state.channel
            && channel.serial > broken
            && !channel.client.is_closed()
        {
            return Ok(channel.clone());
        }
        // Whoever waited for an attempt shares its failure, or a mute runner would keep a row of
        // callers waiting one after the other.
        if let Some((attempt, error)) = &state.failure
            && *attempt > over_before
        {
            return Err(error.clone());
        }
        state.channel = None;
        let connected = self.connect(&mut state).await;
        let attempt = self.attempts.fetch_add(1, Ordering::AcqRel) + 1;
        state.failure = connected.as_ref().err().map(|error| (attempt, error.clone()));
        connected
    }

    async fn connect(&self, state: &mut LinkState) -> Result<Channel, OrchestratorError> {
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

    /// The machine is another one from here on; that its runner is, too, is no news.
    pub(crate) async fn forget(&self) {
        let mut state = self.state.lock().await;
        (state.channel, state.epoch) = (None, None);
    }

    /// Lets go of the channel; callers that still hold its client keep it.
    pub(crate) async fn close(&self) {
        self.state.lock().await.channel = None;
    }
}
