//! The way to a runner on another machine: what a request passes before it leaves, and an answer
//! before it is believed to be the runner's.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, request, response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use sandbank_protocol::{Fault, FaultCode};

use crate::{ChannelBody, ChannelError, RunnerClient, full_body};

/// Knows where the runner is, what may be asked there, and how a request shows whose it is.
pub trait Guard: Send + Sync {
    /// A request's body is gathered before it leaves, up to here; a longer one is refused.
    fn max_body_bytes(&self) -> usize;

    /// Addresses and signs a request, or refuses it. Says how long the answer may take to begin;
    /// for ever when there is no limit.
    fn leave(
        &self,
        head: &mut request::Parts,
        body: &Bytes,
    ) -> Result<Option<Duration>, ChannelError>;

    /// Refuses an answer that is not the runner's own.
    fn arrived(&self, head: &response::Parts) -> Result<(), ChannelError>;

    /// A request left and there is no answer.
    fn lost(&self, error: &ChannelError);
}

/// Why a request did not get to the runner, or its answer is not the runner's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    pub kind: ObstacleKind,
    /// Our own words: nothing of what was answered there.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleKind {
    /// The other side does not take our signature.
    Auth,
    /// The two sides have no version in common.
    Version,
    /// Whoever answers there is not what was looked for.
    BadPath,
    /// It is there, and cannot serve now. Nothing has been done.
    Unavailable,
    /// What is behind it failed.
    BadGateway,
    /// What is behind it took too long.
    GatewayTimeout,
    /// Signed too early or used before. Nothing has been done; a fresh signature may help.
    Stale,
    /// It must not be asked for over this way.
    Forbidden,
    /// So many requests have failed that none is tried for a while.
    BreakerOpen,
}

impl Obstacle {
    pub fn new(kind: ObstacleKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Obstacle> for ChannelError {
    fn from(obstacle: Obstacle) -> Self {
        Self::Stopped(obstacle)
    }
}

impl RunnerClient {
    /// Hands a request on as it is, and the answer whatever it says.
    pub async fn relay(
        &self,
        method: Method,
        path_and_query: &str,
        body: ChannelBody,
    ) -> Result<Response<Incoming>, ChannelError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://runner{path_and_query}"))
            .body(body)
            .map_err(|error| ChannelError::violation(&error.to_string()))?;
        self.transmit(request).await
    }

    pub(crate) async fn send_guarded(
        &self,
        guard: &Arc<dyn Guard>,
        request: Request<ChannelBody>,
    ) -> Result<Response<Incoming>, ChannelError> {
        let (mut head, body) = request.into_parts();
        let body = gathered(body, guard.max_body_bytes()).await?;
        let patience = guard.leave(&mut head, &body)?;
        let sent = self.transmit(Request::from_parts(head, full_body(body)));
        let answered = match patience {
            None => sent.await,
            Some(limit) => tokio::time::timeout(limit, sent)
                .await
                .unwrap_or(Err(ChannelError::TimedOut(limit))),
        };
        let response = answered.inspect_err(|error| guard.lost(error))?;
        let (head, body) = response.into_parts();
        guard.arrived(&head)?;
        Ok(Response::from_parts(head, body))
    }
}

async fn gathered(body: ChannelBody, limit: usize) -> Result<Bytes, ChannelError> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!(
                "a request to a workspace on another machine carries at most {limit} bytes: send \
                 it in pieces"
            );
            Err(Fault::new(FaultCode::LimitReached, message).into())
        }
        Err(error) => Err(ChannelError::broken(&error.to_string())),
    }
}
