//! The listener: plain HTTP/1.1, bounded connections, bounded heads, and an orderly end.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::app::App;
use crate::connection::Connection;
use crate::dialects::find_sessions;
use crate::error::ApiError;
use crate::limits::{ACCEPT_EPISODE, ACCEPT_PAUSE, MAX_HEAD_BYTES, RETRY_SOON};
use crate::lingering::Lingering;
use crate::request::random_id;
use crate::verb_path;

/// Serves until [`crate::Shutdown`] says to stop, then waits for what is still running, at most
/// for the grace time.
pub async fn serve(listener: TcpListener, app: App) -> std::io::Result<()> {
    let bind = listener.local_addr()?;
    find_sessions(&app);
    let server = Arc::new(Server::new(app, bind));
    let connections = TaskTracker::new();
    let shutdown = server.app.shutdown().clone();
    tokio::select! {
        () = accept_all(&listener, &server, &connections) => {}
        () = shutdown.draining() => {}
    }
    drop(listener);
    connections.close();
    // A WebSocket outlives the connection that it was opened on; whoever reads it is told, too.
    let all_ended = async { tokio::join!(connections.wait(), server.app.streams().ended()) };
    tokio::select! {
        _ = all_ended => {}
        () = shutdown.forced() => {}
        () = tokio::time::sleep(server.app.settings().server.shutdown_grace) => {
            tracing::warn!(left = connections.len(), "the grace time is over, cutting connections");
        }
    }
    shutdown.force();
    connections.wait().await;
    Ok(())
}

struct Server {
    app: App,
    router: Router,
    bind: SocketAddr,
    places: Arc<Semaphore>,
}

impl Server {
    fn new(app: App, bind: SocketAddr) -> Self {
        let places = Arc::new(Semaphore::new(app.settings().server.max_connections));
        Self { router: app.router(), bind, places, app }
    }
}

async fn accept_all(listener: &TcpListener, server: &Arc<Server>, connections: &TaskTracker) {
    // Between two failures some connections may well be accepted: that is one episode.
    let mut failed_at: Option<Instant> = None;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match server.places.clone().try_acquire_owned() {
                Ok(place) => {
                    connections.spawn(connection(server.clone(), stream, peer, place));
                }
                Err(_) => drop(connections.spawn(turn_away(stream))),
            },
            // The client's own doing.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                let before = failed_at.replace(Instant::now());
                if before.is_none_or(|time| time.elapsed() > ACCEPT_EPISODE) {
                    tracing::error!(%error, "no connections can be accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers without reading the request, then reads what is already there: closing a socket with
/// unread bytes would take the answer away from the client again.
async fn turn_away(mut stream: TcpStream) {
    let error = ApiError::overloaded(
        StatusCode::SERVICE_UNAVAILABLE,
        "too_many_connections",
        "too many connections",
        RETRY_SOON,
    );
    let body = serde_json::to_string(&error.body(&random_id())).expect("plain data");
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json; charset=utf-8\r\n\
         retry-after: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        RETRY_SOON.as_secs(),
        body.len(),
    );
    let _ = tokio::time::timeout(ACCEPT_PAUSE, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    })
    .await;
}

async fn connection(
    server: Arc<Server>,
    stream: TcpStream,
    peer: SocketAddr,
    _place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let about = Connection {
        peer: Some(peer),
        local: stream.local_addr().ok(),
        loopback_bind: server.bind.ip().is_loopback(),
    };
    let router = server.router.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let body = Body::new(Lingering::new(body, &head.headers));
        let mut request = Request::from_parts(head, body);
        request.extensions_mut().insert(about);
        verb_path::rewrite(request.uri_mut());
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.app.settings().server.header_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let shutdown = server.app.shutdown();
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = shutdown.draining() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = connection.as_mut() => result,
                () = shutdown.forced() => return,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
