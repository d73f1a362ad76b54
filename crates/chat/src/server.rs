//! The way to a model's server: one request, whose answer is read as it comes.
//!
//! A server that is busy is asked again, but only as long as it has said nothing.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{ModelError, told};
use crate::limits::{
    ANSWER_TIMEOUT, ATTEMPTS, CONNECT_TIMEOUT, FIRST_BYTE_TIMEOUT, FIRST_PAUSE, LONGEST_PAUSE,
    MAX_ANSWER_BYTES, MAX_REFUSAL_BYTES, SILENCE_TIMEOUT,
};
use crate::model::{ApiKey, Decoder, Request, Said, error_message};
use crate::sse::Events;

const NAME: &str = concat!("sandbank/", env!("CARGO_PKG_VERSION"));

pub(crate) struct Server {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Server {
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()?
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    pub(crate) async fn ask(
        &self,
        request: &Request,
        decoder: Box<dyn Decoder>,
        key: Option<&ApiKey>,
    ) -> Result<Answer, ModelError> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let body = Bytes::from(serde_json::to_vec(&request.body).expect("plain data"));
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.once(request, body.clone(), key).await {
                Ok(body) => return Ok(Answer::new(body, decoder, deadline)),
                Err(Attempt { error, again: Some(after) }) if attempt < ATTEMPTS => {
                    tracing::info!(%error, attempt, "the model's server is asked again");
                    tokio::time::sleep(after.unwrap_or(pause).min(LONGEST_PAUSE)).await;
                    pause *= 2;
                }
                Err(Attempt { error, .. }) => return Err(error),
            }
        }
        unreachable!("the attempts are counted")
    }

    async fn once(
        &self,
        request: &Request,
        body: Bytes,
        key: Option<&ApiKey>,
    ) -> Result<Incoming, Attempt> {
        let mut call = http::Request::new(Full::new(body));
        *call.method_mut() = Method::POST;
        *call.uri_mut() = request.url.parse().map_err(|_| {
            Attempt::last(ModelError::Unreachable("its address makes no sense".to_owned()))
        })?;
        *call.headers_mut() = request.headers.clone();
        let headers = call.headers_mut();
        headers.insert(header::USER_AGENT, header::HeaderValue::from_static(NAME));
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, header::HeaderValue::from_static("text/event-stream"));
        let answer = match timeout(FIRST_BYTE_TIMEOUT, self.client.request(call)).await {
            Err(_) => return Err(Attempt::last(ModelError::TooSlow)),
            Ok(Err(error)) => {
                let unreachable = ModelError::Unreachable(told(&innermost(&error), key));
                return Err(Attempt { error: unreachable, again: Some(None) });
            }
            Ok(Ok(answer)) => answer,
        };
        let status = answer.status();
        if status.is_success() {
            let kind = answer.headers().get(header::CONTENT_TYPE);
            return match kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
                false => Ok(answer.into_body()),
                true => Err(Attempt::last(ModelError::Nonsense("it does not stream"))),
            };
        }
        let after = answer.headers().get(header::RETRY_AFTER);
        let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
        let after = after.map(Duration::from_secs);
        let error = refusal(status, answer.into_body(), key).await;
        let is_busy = matches!(error, ModelError::Busy { .. });
        Err(Attempt { error, again: is_busy.then_some(after) })
    }
}

/// Why one attempt failed, and, where another may help, after how long.
struct Attempt {
    error: ModelError,
    again: Option<Option<Duration>>,
}

impl Attempt {
    fn last(error: ModelError) -> Self {
        Self { error, again: None }
    }
}

async fn refusal(status: StatusCode, body: Incoming, key: Option<&ApiKey>) -> ModelError {
    let number = status.as_u16();
    match number {
        401 | 403 => return ModelError::Unauthorized,
        429 | 500..=599 => return ModelError::Busy { status: number },
        _ => {}
    }
    let limited = http_body_util::Limited::new(body, MAX_REFUSAL_BYTES).collect();
    let said = match timeout(CONNECT_TIMEOUT, limited).await {
        Ok(Ok(said)) => said.to_bytes(),
        _ => Bytes::new(),
    };
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let message = told(error_message(&said).unwrap_or("it does not say why"), key);
    ModelError::Refused { status: number, message }
}

/// The outer errors of the client only say that there was one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// What the model says, as it comes.
pub(crate) struct Answer {
    body: Incoming,
    decoder: Box<dyn Decoder>,
    events: Events,
    deadline: Instant,
    read: usize,
    is_over: bool,
}

impl Answer {
    fn new(body: Incoming, decoder: Box<dyn Decoder>, deadline: Instant) -> Self {
        let events = Events::default();
        Self { body, decoder, events, deadline, read: 0, is_over: false }
    }

    /// None once the answer is over; one that only stops is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Said>>, ModelError> {
        if self.is_over {
            return Ok(None);
        }
        let until = self.deadline.min(Instant::now() + SILENCE_TIMEOUT);
        let frame = timeout_at(until, self.body.frame()).await.map_err(|_| ModelError::TooSlow)?;
        let Some(Ok(frame)) = frame else { return Err(ModelError::BrokenOff) };
        let Ok(piece) = frame.into_data() else { return Ok(Some(Vec::new())) };
        self.read += piece.len();
        if self.read > MAX_ANSWER_BYTES {
            return Err(ModelError::TooLong("all of it"));
        }
        let mut said = Vec::new();
        for data in self.events.push(&piece)? {
            if self.decoder.read(&data, &mut said)? {
                self.is_over = true;
                break;
            }
        }
        Ok(Some(said))
    }
}
