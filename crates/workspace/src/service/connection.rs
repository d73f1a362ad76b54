//! One connection: TLS, HTTP/2 or 1.1 by its first bytes, and its end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use sandbank_channel::ChannelBody;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::prefixed::Prefixed;
use crate::limits::{
    CONNECTION_WINDOW_BYTES, IDLE_LIMIT, MAX_FRAME_BYTES, MAX_HEAD_BYTES, MAX_SEND_BYTES,
    MAX_STREAMS, PING_INTERVAL, PING_PATIENCE, STRANGER_LIMIT, STREAM_WINDOW_BYTES,
};

/// What one connection does.
#[derive(Default)]
pub(super) struct Activity {
    running: AtomicUsize,
    /// It has shown a right signature.
    pub(super) known: AtomicBool,
    changed: Notify,
}

/// Counts one request until its answer has been sent.
pub(super) struct Running(Arc<Activity>);

impl Running {
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        activity.running.fetch_add(1, Ordering::AcqRel);
        activity.changed.notify_one();
        Self(Arc::clone(activity))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_one();
    }
}

impl Activity {
    /// Resolves when nothing has been asked for too long.
    async fn idle(&self) {
        loop {
            let busy = self.running.load(Ordering::Acquire) > 0;
            let known = self.known.load(Ordering::Acquire);
            let limit = if known { IDLE_LIMIT } else { STRANGER_LIMIT };
            let limit = if busy { Duration::MAX } else { limit };
            tokio::select! {
                () = tokio::time::sleep(limit) => return,
                () = self.changed.notified() => {}
            }
        }
    }
}

pub(super) async fn serve(
    service: Arc<Service>,
    stream: TcpStream,
    peer: SocketAddr,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let tls = service.tls.clone();
    let opened = async {
        match tls {
            None => serve_stream(service, stream, peer, stop).await,
            Some(acceptor) => {
                let accepted = tokio::time::timeout(STRANGER_LIMIT, acceptor.accept(stream)).await;
                match accepted {
                    Ok(Ok(stream)) => serve_stream(service, stream, peer, stop).await,
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS failed"),
                    Err(_) => tracing::debug!(%peer, "TLS took too long"),
                }
            }
        }
    };
    opened.await;
}

async fn serve_stream<S>(
    service: Arc<Service>,
    stream: S,
    peer: SocketAddr,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let looked = tokio::select! {
        looked = tokio::time::timeout(STRANGER_LIMIT, Prefixed::look(stream)) => looked,
        () = stop.cancelled() => return,
    };
    let Ok(Ok((stream, is_http2))) = looked else { return };
    let activity = Arc::new(Activity::default());
    let handler = {
        let activity = Arc::clone(&activity);
        service_fn(move |request: Request<Incoming>| {
            let (service, activity) = (Arc::clone(&service), Arc::clone(&activity));
            async move {
                Ok::<Response<ChannelBody>, Infallible>(
                    service.answer(request, peer, &activity).await,
                )
            }
        })
    };
    // Each ends orderly when told to stop or when nothing is asked.
    let leave = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = activity.idle() => {}
        }
    };
    let ended = if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_PATIENCE)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(MAX_FRAME_BYTES)
            .max_send_buf_size(MAX_SEND_BYTES)
            .serve_connection(TokioIo::new(stream), handler);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = leave => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(STRANGER_LIMIT)
            .max_buf_size(MAX_HEAD_BYTES as usize)
            .serve_connection(TokioIo::new(stream), handler);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = leave => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
