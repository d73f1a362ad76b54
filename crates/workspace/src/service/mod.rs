//! A workspace service: a place of this machine, served to another one.
//!
//! Two routes are for everybody, `/healthz` and `/__meta/version`. Everything else must be signed,
//! and is then handed on to the runner as it came, both ways with the flow control of HTTP/2.

mod answer;
mod connection;
mod prefixed;
pub(crate) mod refusal;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::keys::KeyFile;
use crate::limits::{ACCEPT_PAUSE, MAX_CONNECTIONS, MAX_GATHERED_BYTES, SHUTDOWN_GRACE};
use crate::replay::Replays;
use crate::signature::unix_seconds;
use crate::{Place, tls};

/// Certificates and the key of a service that speaks TLS.
#[derive(Debug, Clone)]
pub struct ServiceTls {
    pub certificates: PathBuf,
    pub key: PathBuf,
}

/// What all connections share.
pub struct Service {
    place: Arc<dyn Place>,
    keys: Arc<KeyFile>,
    replays: Mutex<Replays>,
    /// Bytes of bodies whose hash is not known yet.
    gathering: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    tls: Option<TlsAcceptor>,
}

impl Service {
    pub fn new(
        place: Arc<dyn Place>,
        keys: Arc<KeyFile>,
        files: Option<&ServiceTls>,
    ) -> io::Result<Arc<Self>> {
        let tls = files.map(|files| tls::acceptor(&files.certificates, &files.key)).transpose()?;
        Ok(Arc::new(Self {
            place,
            keys,
            replays: Mutex::new(Replays::since(unix_seconds())),
            gathering: Arc::new(Semaphore::new(MAX_GATHERED_BYTES)),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            tls,
        }))
    }

    /// Serves until told to stop; running requests may then end, for a while.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        let cut = CancellationToken::new();
        tokio::select! {
            () = self.accept_all(&listener, &tasks, &stop, &cut) => {}
            () = stop.cancelled() => {}
        }
        drop(listener);
        tasks.close();
        if tokio::time::timeout(SHUTDOWN_GRACE, tasks.wait()).await.is_err() {
            tracing::warn!(left = tasks.len(), "the grace time is over, cutting connections");
        }
        cut.cancel();
        tasks.wait().await;
    }

    async fn accept_all(
        self: &Arc<Self>,
        listener: &TcpListener,
        tasks: &TaskTracker,
        stop: &CancellationToken,
        cut: &CancellationToken,
    ) {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "no connection can be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(room) = self.connections.clone().try_acquire_owned() else {
                tracing::warn!(%peer, "too many connections; this one is closed");
                continue;
            };
            let (service, stop, cut) = (Arc::clone(self), stop.clone(), cut.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = connection::serve(service, stream, peer, stop) => {}
                    () = cut.cancelled() => {}
                }
                drop(room);
            });
        }
    }
}
