//! What every request to another machine passes: the breaker, the list of what may be asked, the
//! signature; and every answer: is it the service's, and is it the runner's?

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, StatusCode, Uri, request, response};
use sandbank_channel::{ChannelError, Guard, Obstacle, ObstacleKind, current_request_id};
use tokio::time::Instant;

use super::address::Address;
use super::{RemoteSettings, breaker_open};
use crate::breaker::Breaker;
use crate::keys::KeyFile;
use crate::limits::{MAX_BODY_BYTES, PATIENT_BYTES_PER_SECOND};
use crate::request_id::{self, REQUEST_ID_HEADER};
use crate::routes;
use crate::service::refusal::{CLOCK_HEADER, REFUSAL_HEADER, Refusal};
use crate::signature::{Signer, only};
use crate::version::{API_VERSION, ApiVersion, VERSION_HEADER};

pub(crate) struct Signing {
    scheme: Scheme,
    authority: Authority,
    base: String,
    keys: Arc<KeyFile>,
    patience: Duration,
    clock_off_seconds: i64,
    breaker: Arc<Breaker>,
}

impl Signing {
    pub(crate) fn new(
        address: &Address,
        settings: &RemoteSettings,
        keys: Arc<KeyFile>,
        breaker: Arc<Breaker>,
    ) -> Self {
        Self {
            scheme: address.scheme().parse().expect("http or https"),
            authority: address.authority().parse().expect("it was part of a URL"),
            base: address.base.clone(),
            keys,
            patience: settings.patience,
            clock_off_seconds: settings.clock_off_seconds,
            breaker,
        }
    }

    fn place(&self, path: &str) -> Result<Uri, ChannelError> {
        let whole = format!("{}{path}", self.base);
        let path: PathAndQuery = whole.parse().map_err(|_| forbidden("the path makes no sense"))?;
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        uri.path_and_query(path).build().map_err(|_| forbidden("the path makes no sense"))
    }

    /// Waiting for a command's end takes as long as the command.
    fn patience(&self, path: &str, body: &Bytes) -> Option<Duration> {
        let (bare, query) = path.split_once('?').unwrap_or((path, ""));
        if bare.starts_with("/commands/") && bare.ends_with("/wait") {
            return None;
        }
        let waits = query.split('&').find_map(|pair| pair.strip_prefix("wait_ms="));
        let waits =
            waits.and_then(|text| text.parse().ok()).map_or(Duration::ZERO, Duration::from_millis);
        let carried = Duration::from_secs((body.len() / PATIENT_BYTES_PER_SECOND) as u64);
        Some(self.patience.saturating_add(waits).saturating_add(carried))
    }
}

impl Guard for Signing {
    fn max_body_bytes(&self) -> usize {
        MAX_BODY_BYTES
    }

    fn leave(
        &self,
        head: &mut request::Parts,
        body: &Bytes,
    ) -> Result<Option<Duration>, ChannelError> {
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        if !routes::is_allowed(&head.method, &path) {
            return Err(forbidden("this cannot be asked of a workspace on another machine"));
        }
        self.breaker.try_pass(Instant::now()).map_err(breaker_open)?;
        head.uri = self.place(&path)?;
        let signer = Signer::new(self.keys.current()).with_clock_off(self.clock_off_seconds);
        signer.sign(head, &path, body);
        let id = request_id::accepted(current_request_id().as_deref());
        let id = HeaderValue::try_from(id).expect("letters and digits");
        head.headers.insert(REQUEST_ID_HEADER, id);
        Ok(self.patience(&path, body))
    }

    fn arrived(&self, head: &response::Parts) -> Result<(), ChannelError> {
        let judged = judge(head);
        match &judged {
            Err(obstacle) if is_failure(obstacle.kind) => self.breaker.failed(Instant::now()),
            _ => self.breaker.succeeded(),
        }
        judged.map_err(ChannelError::from)
    }

    fn lost(&self, error: &ChannelError) {
        if error.is_broken() {
            self.breaker.failed(Instant::now());
        }
    }
}

/// Of the other side, not of the request.
fn is_failure(kind: ObstacleKind) -> bool {
    use ObstacleKind::{BadGateway, GatewayTimeout, Unavailable};
    matches!(kind, Unavailable | BadGateway | GatewayTimeout)
}

/// Only our own words are used: what was answered there does not get further.
fn judge(head: &response::Parts) -> Result<(), Obstacle> {
    if head.status.is_redirection() {
        let message =
            "the workspace service's address answers with a redirection, which is not followed";
        return Err(Obstacle::new(ObstacleKind::BadPath, message));
    }
    let Some(theirs) = only(&head.headers, VERSION_HEADER) else {
        return Err(stranger(head.status));
    };
    if let Some(refusal) = only(&head.headers, REFUSAL_HEADER) {
        return Err(refused(Refusal::named(refusal), head));
    }
    match theirs.parse::<ApiVersion>() {
        Ok(version) if version.is_compatible() => Ok(()),
        Ok(version) => {
            let message =
                format!("the workspace service speaks version {version}, we speak {API_VERSION}");
            Err(Obstacle::new(ObstacleKind::Version, message))
        }
        Err(()) => Err(stranger(head.status)),
    }
}

/// Somebody on the way answered, or something else is there.
fn stranger(status: StatusCode) -> Obstacle {
    let (kind, says) = match status.as_u16() {
        401 | 403 | 407 => (ObstacleKind::Auth, "who answers there asks for other credentials"),
        504 | 408 => {
            (ObstacleKind::GatewayTimeout, "a proxy waited in vain for the workspace service")
        }
        503 | 429 => (ObstacleKind::Unavailable, "the workspace service cannot serve now"),
        500..=599 => {
            (ObstacleKind::BadGateway, "what answers in place of the workspace service failed")
        }
        _ => (ObstacleKind::BadPath, "what answers there is not a workspace service"),
    };
    Obstacle::new(kind, format!("{says} (status {})", status.as_u16()))
}

fn refused(refusal: Option<Refusal>, head: &response::Parts) -> Obstacle {
    let Some(refusal) = refusal else { return stranger(head.status) };
    let message = match refusal {
        Refusal::Auth => "the workspace service does not accept our secret".to_owned(),
        Refusal::Path => {
            "the workspace service is there, and not below the path of its address".to_owned()
        }
        Refusal::Clock => {
            let behind =
                only(&head.headers, CLOCK_HEADER).and_then(|text| text.parse::<i64>().ok());
            let behind = behind.unwrap_or_default();
            let way = if behind >= 0 { "behind" } else { "ahead of" };
            format!("our clock is {} s {way} the workspace service's", behind.unsigned_abs())
        }
        Refusal::Stale => {
            "the workspace service started after this was signed, or knows it already".to_owned()
        }
        Refusal::Version => {
            format!("the workspace service does not speak our version, {API_VERSION}")
        }
        Refusal::Body => "the body of the request did not arrive as it was signed".to_owned(),
        Refusal::TooLarge => "the request is too large for the workspace service".to_owned(),
        Refusal::Route => "the workspace service does not pass this on".to_owned(),
        Refusal::Unavailable => "the workspace service cannot reach its runner".to_owned(),
        Refusal::Failed => "the workspace service lost its runner".to_owned(),
    };
    Obstacle::new(refusal.obstacle(), message)
}

fn forbidden(message: &str) -> ChannelError {
    Obstacle::new(ObstacleKind::Forbidden, message).into()
}
