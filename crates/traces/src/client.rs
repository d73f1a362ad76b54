//! How a batch gets to the collector: over the connections and the TLS that the rest of the daemon
//! has.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use crate::TraceError;
use crate::limits::{EXPORT_PATIENCE, MAX_ANSWER_BYTES};

type Connections = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

pub(crate) struct Client {
    connections: Connections,
    /// The thread that sends has none of its own.
    runtime: Handle,
    /// So that a collector that is away is one line of the log and not one per batch.
    is_failing: Arc<AtomicBool>,
}

impl Client {
    pub(crate) fn new(runtime: Handle) -> Result<Self, TraceError> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(TraceError::NoCertificates)?
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let connections = legacy::Client::builder(TokioExecutor::new()).build(connector);
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
