//! A workspace's runner, wherever it is.

use std::any::Any;
use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use sandbank_channel::{ChannelError, RunnerClient};

use crate::limits::{FIRST_PAUSE, LONGEST_PAUSE, REMOTE_RETRIES};
use crate::request_id::random;
use crate::{BreakerState, PlaceError, PlaceErrorKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Local,
    Sandbox,
    Remote,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Sandbox => "sandbox",
            Self::Remote => "remote",
        }
    }
}

/// Where a dialect's files and commands are.
#[async_trait]
pub trait Place: Send + Sync {
    /// A client of the runner, over a channel newer than `broken`; 0 is older than any.
    async fn client_after(&self, broken: u64) -> Result<Held, PlaceError>;

    async fn client(&self) -> Result<Held, PlaceError> {
        self.client_after(0).await
    }

    async fn health(&self) -> PlaceHealth;

    /// The workspace's own path where the runner is.
    async fn root(&self) -> Result<String, PlaceError>;

    fn mode(&self) -> Mode;

    fn retries(&self) -> Retries;
}

/// The runner's client, and what must not go away while it is used.
pub struct Held {
    client: RunnerClient,
    serial: u64,
    _hold: Option<Box<dyn Any + Send + Sync>>,
}

impl Held {
    /// `serial` tells this channel from the one before.
    pub fn new(
        client: RunnerClient,
        serial: u64,
        hold: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        Self { client, serial, _hold: hold }
    }

    pub fn serial(&self) -> u64 {
        self.serial
    }
}

impl Deref for Held {
    type Target = RunnerClient;

    fn deref(&self) -> &RunnerClient {
        &self.client
    }
}

/// How often a call is made again, and with what pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    pub count: u32,
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Retries {
    /// On this machine a broken channel is made again at once, or not at all.
    pub const LOCAL: Self =
        Self { count: 1, first_pause: Duration::ZERO, longest_pause: Duration::ZERO };
    pub const REMOTE: Self =
        Self { count: REMOTE_RETRIES, first_pause: FIRST_PAUSE, longest_pause: LONGEST_PAUSE };

    /// Before the n-th try after the first, counted from 0. Not the same for everybody, or all
    /// would come back in the same moment.
    fn pause(self, n: u32) -> Duration {
        let longest = self.first_pause.saturating_mul(1 << n.min(16)).min(self.longest_pause);
        let half = longest / 2;
        let chance = (random() % 1_000) as u32;
        half + half * chance / 1_000
    }
}

/// Calls of a place.
pub trait PlaceCalls: Place {
    /// Makes a call that may be made twice, and again over a fresh channel when it did not get
    /// through. The call is given a client of its own, because a borrowed one could not be shown to
    /// be `Send`.
    fn run<T, F, A>(&self, call: F) -> impl Future<Output = Result<T, PlaceError>> + Send
    where
        T: Send,
        F: Fn(RunnerClient) -> A + Send + Sync,
        A: Future<Output = Result<T, ChannelError>> + Send,
    {
        async move {
            let retries = self.retries();
            let (mut tries, mut broken) = (0, 0);
            loop {
                let tried = match self.client_after(broken).await {
                    Ok(held) => {
                        broken = held.serial();
                        call(held.client.clone()).await.map_err(PlaceError::from)
                    }
                    Err(error) => Err(error),
                };
                let error = match tried {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                if tries == retries.count || !error.may_pass() {
                    return Err(error);
                }
                // The channel is all right when it was the service that refused.
                if let PlaceError::Channel(inner) = &error
                    && matches!(**inner, ChannelError::Stopped(_))
                {
                    broken = 0;
                }
                tokio::time::sleep(retries.pause(tries)).await;
                tries += 1;
            }
        }
    }
}

impl<P: Place + ?Sized> PlaceCalls for P {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceHealth {
    pub state: PlaceState,
    /// Of the way to another machine; there is none to this one.
    pub breaker: Option<BreakerState>,
    /// Of the runner, as far as it was reached.
    pub version: Option<String>,
    pub wrong: Option<Wrong>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceState {
    Healthy,
    Unhealthy,
}

/// What keeps a place from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub kind: PlaceErrorKind,
    pub message: String,
    pub next_step: &'static str,
}

impl PlaceHealth {
    pub(crate) fn of(
        reached: Result<Option<String>, PlaceError>,
        breaker: Option<BreakerState>,
    ) -> Self {
        match reached {
            Ok(version) => Self { state: PlaceState::Healthy, breaker, version, wrong: None },
            Err(error) => {
                let wrong = Wrong {
                    kind: error.kind(),
                    message: error.to_string(),
                    next_step: error.next_step(),
                };
                Self { state: PlaceState::Unhealthy, breaker, version: None, wrong: Some(wrong) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_are_never_less_than_half() {
        for (n, longest) in [(0, 500), (1, 1_000), (2, 2_000), (3, 4_000), (4, 5_000), (40, 5_000)]
        {
            let pause = Retries::REMOTE.pause(n).as_millis();
            assert!((longest / 2..=longest).contains(&pause), "{n}: {pause}");
        }
        assert_eq!(Retries::LOCAL.pause(0), Duration::ZERO);
    }
}
