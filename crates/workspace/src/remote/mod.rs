//! A runner on another machine, behind a workspace service.

mod address;
mod dial;
mod first_bytes;
mod guard;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sandbank_channel::{ChannelError, Obstacle, ObstacleKind, RunnerClient};
use sandbank_protocol::{FaultCode, Hello};
use tokio::time::Instant;

use crate::breaker::{Breaker, BreakerState};
use crate::keys::KeyFile;
use crate::limits::ANSWER_PATIENCE;
use crate::link::Link;
use crate::place::{Held, Mode, Place, PlaceHealth, Retries};
use crate::{PlaceError, Problem};
use address::Address;
use dial::Dialer;
use first_bytes::{FirstBytes, Remembered};
use guard::Signing;

#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// `http://host:port/path` or `https://…`.
    pub url: String,
    /// The one host and port that is ever called, if it is to be said twice.
    pub allowed: Option<String>,
    pub tls: RemoteTls,
    /// How long an answer may take to begin, beside what its body needs to get there.
    pub patience: Duration,
    /// For tests of clocks that differ.
    pub clock_off_seconds: i64,
}

/// Whom to believe at the other end of TLS.
#[derive(Debug, Clone, Default)]
pub struct RemoteTls {
    /// Certificates of authorities. That of the system when absent.
    pub authorities: Option<PathBuf>,
}

/// What the caller calls these settings, for messages.
#[derive(Debug, Clone, Copy)]
pub struct RemoteNames<'a> {
    pub url: &'a str,
    pub allowed: &'a str,
    pub authorities: &'a str,
}

impl RemoteSettings {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            allowed: None,
            tls: RemoteTls::default(),
            patience: ANSWER_PATIENCE,
            clock_off_seconds: 0,
        }
    }

    /// All that is wrong, one line each.
    pub fn problems(&self, names: &RemoteNames<'_>) -> Vec<Problem> {
        let address = match Address::parse(&self.url) {
            Ok(address) => address,
            Err(what) => {
                let fix = "give it as http://host:port or https://host:port";
                return vec![Problem::new(names.url, what, fix)];
            }
        };
        let mut problems = Vec::new();
        if let Some(allowed) = &self.allowed
            && *allowed != address.authority()
        {
            let what = format!("{} is not {allowed}, the only one allowed", address.authority());
            let fix = format!("make it host:port of {}", names.url);
            problems.push(Problem::new(names.allowed, what, fix));
        }
        if let Err(error) = Dialer::new(address, &self.tls) {
            let fix = "name a file of PEM certificates";
            let what = format!("TLS cannot be used: {error}");
            problems.push(Problem::new(names.authorities, what, fix));
        }
        problems
    }
}

pub struct RemotePlace {
    guard: Arc<Signing>,
    dialer: Dialer,
    breaker: Arc<Breaker>,
    link: Link,
}

impl RemotePlace {
    /// Calls nobody yet.
    pub fn new(settings: &RemoteSettings, keys: Arc<KeyFile>) -> Result<Self, PlaceError> {
        let problems = settings.problems(&RemoteNames {
            url: "the workspace service's URL",
            allowed: "the allowed host",
            authorities: "the file of authorities",
        });
        if !problems.is_empty() {
            return Err(PlaceError::Settings(problems));
        }
        let address = Address::parse(&settings.url).expect("there is no problem with it");
        let breaker = Arc::new(Breaker::default());
        let guard = Signing::new(&address, settings, keys, Arc::clone(&breaker));
        let dialer = Dialer::new(address, &settings.tls)
            .map_err(|error| PlaceError::Unreachable(error.to_string()))?;
        Ok(Self { guard: Arc::new(guard), dialer, breaker, link: Link::default() })
    }

    pub fn breaker(&self) -> BreakerState {
        self.breaker.state(Instant::now())
    }

    async fn connect(&self) -> Result<(RunnerClient, Hello), PlaceError> {
        let stream = self.dialer.dial().await.inspect_err(|error| {
            if error.may_pass() {
                self.breaker.failed(Instant::now());
            }
        })?;
        let guard: Arc<dyn sandbank_channel::Guard> = self.guard.clone();
        let first = FirstBytes::default();
        let stream = Remembered::new(stream, first.clone());
        let reached = RunnerClient::connect_past(Some(guard), stream).await;
        reached.map_err(|error| self.not_reached(error, &first))
    }

    /// What the first question's failure says about the other side.
    fn not_reached(&self, error: ChannelError, first: &FirstBytes) -> PlaceError {
        if let (ChannelError::Broken(_), Some(protocol)) = (&error, first.other_protocol()) {
            let message = format!("what answers there speaks {protocol}, not as a service does");
            return PlaceError::obstacle(ObstacleKind::BadPath, message);
        }
        match &error {
            // Answers of the runner itself to its first question: it is an older or a newer one.
            ChannelError::Refused(fault) if fault.code == FaultCode::NotFound => {
                PlaceError::obstacle(
                    ObstacleKind::Version,
                    "the runner behind the workspace service does not know its first question",
                )
            }
            ChannelError::Violation(_) => PlaceError::obstacle(
                ObstacleKind::BadPath,
                "what answers there is not a workspace service",
            ),
            ChannelError::TimedOut(limit) => {
                // The handshake as a whole has a limit of its own, which nobody else counts.
                self.breaker.failed(Instant::now());
                PlaceError::TimedOut(*limit)
            }
            ChannelError::Broken(why) => {
                self.breaker.failed(Instant::now());
                PlaceError::Unreachable(why.clone())
            }
            _ => error.into(),
        }
    }
}

#[async_trait]
impl Place for RemotePlace {
    async fn client_after(&self, broken: u64) -> Result<Held, PlaceError> {
        if let BreakerState::Open { retry_in } = self.breaker() {
            return Err(ChannelError::from(breaker_open(retry_in)).into());
        }
        self.link.channel_after(broken, self.connect()).await
    }

    /// Asks; what was said before may be long past.
    async fn health(&self) -> PlaceHealth {
        let reached = match self.client().await {
            Ok(held) => held.stats().await.map(drop).map_err(PlaceError::from),
            Err(error) => Err(error),
        };
        let version = self.link.hello().await.map(|hello| hello.runner_version);
        PlaceHealth::of(reached.map(|()| version), Some(self.breaker()))
    }

    async fn root(&self) -> Result<String, PlaceError> {
        self.client().await?;
        let hello = self.link.hello().await;
        Ok(hello.map(|hello| hello.workspace).unwrap_or_default())
    }

    fn mode(&self) -> Mode {
        Mode::Remote
    }

    fn retries(&self) -> Retries {
        Retries::REMOTE
    }
}

fn breaker_open(retry_in: Duration) -> Obstacle {
    let seconds = retry_in.as_secs() + 1;
    let message = format!("the workspace service failed repeatedly; tried again in {seconds} s");
    Obstacle::new(ObstacleKind::BreakerOpen, message)
}
