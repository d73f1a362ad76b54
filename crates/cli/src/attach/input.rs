//! Standard input on its way to the command: read in a thread, sent by offset.
//!
//! Each piece carries the offset of its first byte, so that sending it again after a broken
//! connection or a server's restart neither loses nor repeats a byte.

use std::io::Read;
use std::time::Instant as Moment;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::detach::DetachKeys;
use crate::client::{Client, ClientError};
use crate::limits::{
    RECONNECT_FIRST_PAUSE, RECONNECT_LAST_PAUSE, RECONNECT_LIMIT, STDIN_PIECE_BYTES,
};

pub(super) struct Input {
    /// Gives true when the person detached.
    task: Option<JoinHandle<bool>>,
}

struct Feed {
    client: Client,
    sandbox: String,
    command: String,
    offset: u64,
}

impl Input {
    pub(super) fn none() -> Self {
        Self { task: None }
    }

    pub(super) fn start(
        client: &Client,
        sandbox: &str,
        command: &str,
        offset: u64,
        terminal: bool,
    ) -> Self {
        let feed = Feed {
            client: client.clone(),
            sandbox: sandbox.to_owned(),
            command: command.to_owned(),
            offset,
        };
        let keys = terminal.then(DetachKeys::default);
        Self { task: Some(tokio::spawn(feed.run(read_stdin(), keys))) }
    }

    /// Resolves only when the person detached; the end of input changes nothing here.
    pub(super) async fn detached(&mut self) {
        if let Some(task) = &mut self.task {
            let detached = matches!(task.await, Ok(true));
            self.task = None;
            if detached {
                return;
            }
        }
        std::future::pending().await
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The thread may stay in its read for ever; it ends with the process.
fn read_stdin() -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; STDIN_PIECE_BYTES];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    if sender.blocking_send(Bytes::copy_from_slice(&buffer[..count])).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    });
    receiver
}

impl Feed {
    async fn run(
        mut self,
        mut pieces: mpsc::Receiver<Bytes>,
        mut keys: Option<DetachKeys>,
    ) -> bool {
        while let Some(piece) = pieces.recv().await {
            let detach = keys.as_mut().is_some_and(|keys| keys.typed(&piece, Moment::now()));
            if detach {
                return true;
            }
            let length = piece.len() as u64;
            if self.send(piece, false).await.is_err() {
                return false;
            }
            self.offset += length;
        }
        let _ = self.send(Bytes::new(), true).await;
        false
    }

    /// An error means that the command takes no more input; how it ended is told elsewhere.
    async fn send(&self, piece: Bytes, eof: bool) -> Result<(), ClientError> {
        let started = Instant::now();
        let mut pause = RECONNECT_FIRST_PAUSE;
        loop {
            let sent = self.client.send_stdin(
                &self.sandbox,
                &self.command,
                self.offset,
                eof,
                piece.clone(),
            );
            match sent.await {
                Err(error) if error.may_pass() && started.elapsed() < RECONNECT_LIMIT => {
                    tracing::debug!(%error, "standard input is sent again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RECONNECT_LAST_PAUSE);
                }
                done => return done,
            }
        }
    }
}
