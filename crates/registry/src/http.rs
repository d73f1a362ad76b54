//! One request and its answer: redirects, deadlines, bounded bodies.

use std::error::Error as _;
use std::time::Instant;

use ::http::header::{ACCEPT, AUTHORIZATION, LOCATION, RANGE, USER_AGENT};
use ::http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::error::clipped;
use crate::limits::{CONNECT_TIMEOUT, REDIRECTS};
use crate::pace::Pace;
use crate::settings::{is_inside, is_loopback};
use crate::{RegistryError, RegistrySettings};

const NAME: &str = concat!("sandbank/", env!("CARGO_PKG_VERSION"));

pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    settings: RegistrySettings,
}

/// What is asked for, beside where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) accept: Option<&'static str>,
    /// For the host of the first request only.
    pub(crate) authorization: Option<HeaderValue>,
    /// The first byte wanted.
    pub(crate) from: u64,
}

impl Http {
    pub(crate) fn new(settings: RegistrySettings) -> Result<Self, RegistryError> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(RegistryError::NoCertificates)?
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), settings })
    }

    pub(crate) fn scheme_of(&self, host: &str) -> &'static str {
        if self.settings.is_insecure(host) { "http" } else { "https" }
    }

    /// Whether an answer of `from` may send us to `to`. A registry that is not this machine cannot
    /// make us ask something here, and none what only this machine can reach.
    pub(crate) fn may_go(&self, from: &str, to: &Uri) -> Result<(), RegistryError> {
        let target = to.authority().map_or("", |authority| authority.as_str());
        let (host, shown) = (from.to_owned(), clipped(target));
        let settings = &self.settings;
        let is_named = settings.insecure.iter().any(|named| named == target);
        let is_known = is_named || target == from;
        if !is_known && is_inside(target) && !(is_loopback(target) && is_loopback(from)) {
            return Err(RegistryError::Inside { host, target: shown });
        }
        let may = match to.scheme_str() {
            Some("https") => true,
            Some("http") => {
                is_named || (settings.is_insecure(target) && settings.is_insecure(from))
            }
            _ => false,
        };
        if may { Ok(()) } else { Err(RegistryError::WithoutTls { host, target: shown }) }
    }

    pub(crate) async fn get(&self, uri: Uri, ask: &Ask) -> Result<Answer, RegistryError> {
        let (mut uri, mut ask) = (uri, ask.clone());
        for _ in 0..=REDIRECTS {
            let answer = self.once(&uri, &ask).await?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            let next = answer.location(&uri)?;
            self.may_go(&answer.host, &next)?;
            if next.authority() != uri.authority() {
                ask.authorization = None;
            }
            uri = next;
        }
        let reason = format!("more than {REDIRECTS} redirections");
        Err(RegistryError::Malformed { what: "an answer", host: host_of(&uri), reason })
    }

    async fn once(&self, uri: &Uri, ask: &Ask) -> Result<Answer, RegistryError> {
        let mut request = Request::get(uri.clone()).header(USER_AGENT, NAME);
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some(authorization) = &ask.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if ask.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", ask.from));
        }
        let host = host_of(uri);
        let request = request.body(Empty::new()).map_err(|error| {
            let reason = error.to_string();
            RegistryError::Malformed { what: "an address", host: host.clone(), reason }
        })?;
        let stall = self.settings.stall;
        let answer = tokio::time::timeout(CONNECT_TIMEOUT.max(stall), self.client.request(request));
        match answer.await {
            Ok(Ok(answer)) => {
                let (head, body) = answer.into_parts();
                let pace = Pace::new(stall);
                Ok(Answer { host, status: head.status, headers: head.headers, body, pace })
            }
            Ok(Err(error)) if error.is_connect() => {
                Err(RegistryError::Unreachable { host, reason: innermost(&error) })
            }
            Ok(Err(error)) => Err(RegistryError::Broken { host, reason: innermost(&error) }),
            Err(_) => Err(RegistryError::Stalled { host, waited: CONNECT_TIMEOUT.max(stall) }),
        }
    }
}

fn host_of(uri: &Uri) -> String {
    uri.authority().map_or_else(String::new, |authority| authority.as_str().to_owned())
}

/// The outer errors of the client only say that there was one.
fn innermost(error: &hyper_util::client::legacy::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    clipped(&inner.to_string())
}

pub(crate) struct Answer {
    pub(crate) host: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    pace: Pace,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn location(&self, uri: &Uri) -> Result<Uri, RegistryError> {
        let wrong = |reason: &str| RegistryError::Malformed {
            what: "a redirection",
            host: self.host.clone(),
            reason: clipped(reason),
        };
        let location = self.header(LOCATION.as_str()).ok_or_else(|| wrong("it leads nowhere"))?;
        let absolute = match (location.starts_with('/'), uri.scheme_str(), uri.authority()) {
            (true, Some(scheme), Some(authority)) => format!("{scheme}://{authority}{location}"),
            _ => location.to_owned(),
        };
        absolute.parse().map_err(|_| wrong(location))
    }

    /// The next piece of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let begun = Instant::now();
            let patience = self.pace.patience();
            let frame = tokio::time::timeout(patience, self.body.frame()).await;
            let host = || self.host.clone();
            self.pace.waited += begun.elapsed();
            match frame {
                Err(_) => return Err(self.pace.too_slow(host(), patience)),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let inner = error.source().map_or_else(|| error.to_string(), |e| e.to_string());
                    return Err(RegistryError::Broken { host: host(), reason: clipped(&inner) });
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.pace.came(data.len() as u64);
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// All of a body that must not be longer than `limit`.
    pub(crate) async fn read(
        mut self,
        what: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if content.len() as u64 + chunk.len() as u64 > limit {
                return Err(RegistryError::TooLarge { what, host: self.host, limit });
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// The beginning of a body, as far as it comes.
    pub(crate) async fn beginning(mut self, limit: u64) -> Vec<u8> {
        let mut content = Vec::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            let left = limit as usize - content.len();
            content.extend_from_slice(&chunk[..chunk.len().min(left)]);
            if content.len() as u64 >= limit {
                break;
            }
        }
        content
    }
}
