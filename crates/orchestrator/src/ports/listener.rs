//! Accepts connections to one published port.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::connection;
use super::host_port::HostPort;
use crate::limits::{ACCEPT_RETRY, CONNECTIONS_PER_PORT};
use crate::sandbox::SharedSandbox;

/// Runs until `stop`; connections end with it, and the host port is free again.
pub(super) async fn serve(
    sandbox: SharedSandbox,
    host: HostPort,
    port: u16,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_PER_PORT));
    let mut failing = false;
    let accepting = async {
        loop {
            match host.listener.accept().await {
                Ok((socket, _)) => {
                    failing = false;
                    begin(&sandbox, &places, socket, port, &stop);
                }
                Err(error) => {
                    // Out of descriptors, most likely; one line per episode.
                    if !failing {
                        tracing::warn!(sandbox = %sandbox.id(), port, %error, "cannot accept");
                    }
                    failing = true;
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
}

fn begin(
    sandbox: &SharedSandbox,
    places: &Arc<Semaphore>,
    socket: TcpStream,
    port: u16,
    stop: &CancellationToken,
) {
    let (sandbox, stop) = (sandbox.clone(), stop.clone());
    let place = places.clone().try_acquire_owned().ok();
    tokio::spawn(async move {
        let connection = async {
            match &place {
                Some(_) => connection::serve(&sandbox, socket, port).await,
                None => connection::refuse_crowded(socket, port).await,
            }
        };
        stop.run_until_cancelled(connection).await;
    });
}
