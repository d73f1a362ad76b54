//! The API, typed by bollard, over our own connections; and the two things that need the bare
//! connection, a container's streams and the feed of events.

use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::{BollardRequest, ClientVersion, Docker};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, UPGRADE};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use sandbank_engine::EngineError;

use super::dial::{Dialer, Wire};
use super::error::{self, Refusal};
use super::find::Found;
use crate::limits::{API_DEADLINE, ERROR_BODY_BYTES, IMPORT_DEADLINE};

/// The oldest API that has all we use: Docker 20.10.
const OLDEST: (usize, usize) = (1, 41);

/// The newest that we know; a newer engine is spoken to as if it were this.
const NEWEST: (usize, usize) = (1, 51);

pub(crate) struct Client {
    docker: Docker,
    dialer: Arc<Dialer>,
    /// `/v1.41`
    prefix: String,
    /// How long an answer may take to begin.
    deadline: Duration,
    pub(crate) found: Found,
    /// That containers run on, as image configurations name it.
    pub(crate) machine: String,
}

/// A container's streams: what is written is its input, what is read are frames of its output.
pub(crate) struct Attached {
    pub(crate) wire: Wire,
    /// What came with the answer's head.
    pub(crate) read: Bytes,
}

impl Client {
    /// Fails when nobody answers, or an engine that is too old.
    pub(crate) async fn connect(found: Found) -> Result<Self, EngineError> {
        Self::connect_within(found, API_DEADLINE).await
    }

    pub(crate) async fn connect_within(
        found: Found,
        deadline: Duration,
    ) -> Result<Self, EngineError> {
        let dialer = Dialer::new(found.address.clone())
            .map_err(|error| error::unreachable(&found.address, &error))?;
        let plain = docker(Arc::clone(&dialer), String::new(), deadline)?;
        let failed = |error| error::translate(&found.address, "say its version", error);
        let version = plain.version().await.map_err(failed)?;
        let spoken = version.api_version.as_deref().and_then(parse_version).unwrap_or((0, 0));
        if spoken < OLDEST {
            return Err(EngineError::Unavailable(format!(
                "Docker at {} speaks API {}.{}; Sandbank needs {}.{}, which is Docker 20.10 or \
                 later: update it, or name another engine with SANDBANK_DOCKER_HOST",
                found.address, spoken.0, spoken.1, OLDEST.0, OLDEST.1
            )));
        }
        let (major, minor) = spoken.min(NEWEST);
        let prefix = format!("/v{major}.{minor}");
        let docker = docker(Arc::clone(&dialer), prefix.clone(), deadline)?;
        let here = || sandbank_image_archive::machine().to_owned();
        let machine = version.arch.filter(|arch| !arch.is_empty()).unwrap_or_else(here);
        Ok(Self { docker, dialer, prefix, deadline, found, machine })
    }

    pub(crate) fn api(&self) -> &Docker {
        &self.docker
    }

    /// For what takes as long as it has to send: whoever asks watches it himself.
    pub(crate) fn patient(&self) -> Docker {
        self.docker.clone().with_timeout(IMPORT_DEADLINE)
    }

    /// For `map_err`: names what the engine was asked to do.
    pub(crate) fn failed(&self, step: &'static str) -> impl Fn(Error) -> EngineError + '_ {
        move |error| error::translate(self.dialer.address(), step, error)
    }

    /// A response whose body goes on for as long as both sides like.
    pub(crate) async fn stream(
        &self,
        path: &str,
        step: &'static str,
    ) -> Result<Response<Incoming>, EngineError> {
        let request = self.request(Method::GET, path).body(Empty::new());
        let response = self.send(request, step).await?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(error::refused(step, &refusal(response).await)),
        }
    }

    /// An answer whose form differs between versions.
    pub(crate) async fn json(
        &self,
        path: &str,
        step: &'static str,
    ) -> Result<serde_json::Value, EngineError> {
        let body = self.stream(path, step).await?.into_body().collect().await;
        let bytes = body.map_err(|error| self.failed(step)(error.into()))?.to_bytes();
        serde_json::from_slice(&bytes).map_err(|error| self.failed(step)(error.into()))
    }

    /// Takes the connection over. The refusal is the caller's to understand.
    pub(crate) async fn attach(
        &self,
        path: &str,
    ) -> Result<Result<Attached, Refusal>, EngineError> {
        let step = "attach to a container";
        let request = self
            .request(Method::POST, path)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "tcp")
            .header(CONTENT_LENGTH, 0)
            .body(Empty::new());
        let response = self.send(request, step).await?;
        if !matches!(response.status(), StatusCode::SWITCHING_PROTOCOLS | StatusCode::OK) {
            return Ok(Err(refusal(response).await));
        }
        let broken = |error: Error| self.failed(step)(error);
        let upgraded = hyper::upgrade::on(response).await.map_err(|e| broken(e.into()))?;
        let parts = upgraded.downcast::<TokioIo<Wire>>().map_err(|_| {
            EngineError::Internal("a connection came back as another than it was".to_owned())
        })?;
        Ok(Ok(Attached { wire: parts.io.into_inner(), read: parts.read_buf }))
    }

    fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        let host = HeaderValue::from_static("docker");
        Request::builder().method(method).uri(format!("{}{path}", self.prefix)).header(HOST, host)
    }

    async fn send(
        &self,
        request: hyper::http::Result<Request<Empty<Bytes>>>,
        step: &'static str,
    ) -> Result<Response<Incoming>, EngineError> {
        let request = request.map_err(|error| self.failed(step)(error.into()))?;
        let sending = tokio::time::timeout(self.deadline, exchange(&self.dialer, request)).await;
        let sent = sending.unwrap_or(Err(Error::RequestTimeoutError));
        sent.map_err(self.failed(step))
    }
}

fn docker(dialer: Arc<Dialer>, prefix: String, deadline: Duration) -> Result<Docker, EngineError> {
    let prefix: Arc<str> = prefix.into();
    let transport = move |request: BollardRequest| {
        let (dialer, prefix) = (Arc::clone(&dialer), Arc::clone(&prefix));
        async move { exchange(&dialer, versioned(request, &prefix)?).await }
    };
    let newest = ClientVersion { major_version: NEWEST.0, minor_version: NEWEST.1 };
    Docker::connect_with_custom_transport(
        transport,
        Some("http://docker"),
        deadline.as_secs(),
        &newest,
    )
    .map_err(|error| EngineError::Internal(format!("the Docker client cannot be made: {error}")))
}

/// bollard leaves the version out of the path, which an engine takes for its newest.
fn versioned(mut request: BollardRequest, prefix: &str) -> Result<BollardRequest, Error> {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    *request.uri_mut() = format!("{prefix}{path}").parse::<Uri>()?;
    request.headers_mut().insert(HOST, HeaderValue::from_static("docker"));
    Ok(request)
}

/// One request on one connection, which ends with the answer's body or is taken over.
async fn exchange<B>(dialer: &Dialer, request: Request<B>) -> Result<Response<Incoming>, Error>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let wire = dialer.dial().await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(wire)).await?;
    let connection = tokio::spawn(async move {
        let ended = connection.with_upgrades().await;
        if let Err(error) = &ended {
            tracing::trace!(%error, "a connection to Docker ended");
        }
        ended
    });
    let sent = sender.send_request(request).await;
    drop(sender);
    match sent {
        // The connection ended before it took the request, and it alone knows why.
        Err(error) if error.is_canceled() => match connection.await {
            Ok(Err(why)) => Err(why.into()),
            _ => Err(error.into()),
        },
        sent => Ok(sent?),
    }
}

async fn refusal(response: Response<Incoming>) -> Refusal {
    #[derive(serde::Deserialize)]
    struct Message {
        message: String,
    }
    let status = response.status().as_u16();
    let body = http_body_util::Limited::new(response.into_body(), ERROR_BODY_BYTES);
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message = match serde_json::from_slice::<Message>(&bytes) {
        Ok(said) => said.message,
        Err(_) => String::from_utf8_lossy(&bytes).trim().to_owned(),
    };
    Refusal { status, message }
}

fn parse_version(text: &str) -> Option<(usize, usize)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(parse_version("1.9") < parse_version("1.41"));
        assert_eq!(parse_version("x"), None);
    }
}
