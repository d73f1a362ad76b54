//! The channel to one runner: made when first needed, kept, made again when it broke.

use std::sync::atomic::{AtomicU64, Ordering};

use sandbank_channel::RunnerClient;
use sandbank_protocol::Hello;
use tokio::sync::Mutex;

use crate::{Held, PlaceError};

#[derive(Default)]
pub(crate) struct Link {
    /// Held while connecting, so that callers share one attempt.
    state: Mutex<State>,
    /// Attempts to connect that are over.
    attempts: AtomicU64,
}

#[derive(Default)]
struct State {
    channel: Option<RunnerClient>,
    serial: u64,
    /// Of the runner that was last reached.
    hello: Option<Hello>,
    /// The last attempt that failed, by its number.
    failure: Option<(u64, PlaceError)>,
}

impl Link {
    /// A channel newer than `broken`, for a caller who could not use that one.
    pub(crate) async fn channel_after(
        &self,
        broken: u64,
        connect: impl Future<Output = Result<(RunnerClient, Hello), PlaceError>>,
    ) -> Result<Held, PlaceError> {
        let over_before = self.attempts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if let Some(client) = &state.channel
            && state.serial > broken
            && !client.is_closed()
        {
            return Ok(Held::new(client.clone(), state.serial, None));
        }
        // Whoever waited for an attempt shares its failure, or a mute runner would keep a row of
        // callers waiting one after the other.
        if let Some((attempt, error)) = &state.failure
            && *attempt > over_before
        {
            return Err(error.clone());
        }
        state.channel = None;
        let connected = connect.await;
        let attempt = self.attempts.fetch_add(1, Ordering::AcqRel) + 1;
        state.failure = connected.as_ref().err().map(|error| (attempt, error.clone()));
        let (client, hello) = connected?;
        state.serial += 1;
        state.channel = Some(client.clone());
        state.hello = Some(hello);
        Ok(Held::new(client, state.serial, None))
    }

    /// Of the runner that was last reached.
    pub(crate) async fn hello(&self) -> Option<Hello> {
        self.state.lock().await.hello.clone()
    }

    pub(crate) async fn close(&self) {
        self.state.lock().await.channel = None;
    }
}
