//! How a batch gets to the collector: over the connections and the TLS that the rest of the daemon
//! has.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use crate::TraceError;
use crate::limits::{EXPORT_PATIENCE, MAX_ANSWER_BYTES};

/// Only https has to know whom this system trusts: a machine without certificates may have a
/// collector all the same.
#[derive(Clone)]
enum Connections {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Connections {
    fn to(url: &str) -> Result<Self, TraceError> {
        let clients = legacy::Client::builder(TokioExecutor::new());
        let mut connector = HttpConnector::new();
        // Schemes are compared without case.
        if !url.parse().is_ok_and(|uri: Uri| uri.scheme() == Some(&Scheme::HTTPS)) {
            return Ok(Self::Plain(clients.build(connector)));
        }
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(TraceError::NoCertificates)?
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self::Tls(clients.build(connector)))
    }

    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

pub(crate) struct Client {
    connections: Connections,
    /// The thread that sends has none of its own.
    runtime: Handle,
    /// So that a collector that is away is one line of the log and not one per batch.
    is_failing: Arc<AtomicBool>,
}

impl Client {
    /// Of the collector at `url`.
    pub(crate) fn new(url: &str, runtime: Handle) -> Result<Self, TraceError> {
        let connections = Connections::to(url)?;
        Ok(Self { connections, runtime, is_failing: Arc::default() })
    }
}

/// Headers of a request may hold the collector's token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let connections = self.connections.clone();
        let sending = async move {
            let response = connections.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // The clock is the runtime's, too.
        let sending = async move { tokio::time::timeout(EXPORT_PATIENCE, sending).await };
        let sent = match self.runtime.spawn(sending).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(elapsed)) => Err(elapsed.into()),
            Err(stopped) => Err(stopped.into()),
        };
        self.note(&sent);
        sent
    }
}

impl Client {
    /// What the collector says is not repeated: it may be anybody.
    fn note(&self, sent: &Result<Response<Bytes>, HttpError>) {
        let wrong = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answers {}", response.status().as_u16())),
            Err(_) => Some("it is not reached, or answers no HTTP".to_owned()),
        };
        let was_failing = self.is_failing.swap(wrong.is_some(), Ordering::Relaxed);
        match wrong {
            Some(why) if !was_failing => {
                tracing::warn!(
                    why,
                    "the collector of traces does not take spans; they are dropped"
                );
            }
            None if was_failing => tracing::info!("the collector of traces takes spans again"),
            _ => {}
        }
    }
}
