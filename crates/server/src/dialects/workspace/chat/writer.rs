//! What clients say, on its way to the program.
//!
//! A program that does not read makes its writer wait, and nobody else: what is heard, interrupted
//! or restarted does not go through here.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use sandbank_channel::full_body;
use serde_json::Value;
use tokio::sync::mpsc;

use super::super::place::Place;
use super::super::sessions::Live;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::limits::MAX_CHAT_WAITING;

/// Takes lines for as long as there is room.
pub(super) struct Writer(mpsc::Sender<Bytes>);

/// Gives them to the program, in turn with other clients.
pub(super) struct Writing {
    app: App,
    live: Arc<Live>,
    lines: mpsc::Receiver<Bytes>,
    complaints: mpsc::Sender<ApiError>,
}

/// Also what could not be written, and why.
pub(super) fn writer(app: App, live: Arc<Live>) -> (Writer, Writing, mpsc::Receiver<ApiError>) {
    let (sender, lines) = mpsc::channel(MAX_CHAT_WAITING);
    let (complaints, heard) = mpsc::channel(MAX_CHAT_WAITING);
    (Writer(sender), Writing { app, live, lines, complaints }, heard)
}

impl Writer {
    /// False when the program has not read for so long that there is no room.
    pub(super) fn put(&self, line: &Value) -> bool {
        self.0.try_send(format!("{line}\n").into()).is_ok()
    }
}

impl Writing {
    /// Until nobody puts lines any more.
    pub(super) async fn run(mut self) -> Infallible {
        while let Some(line) = self.lines.recv().await {
            if let Err(error) = self.write(line).await {
                let _ = self.complaints.send(error).await;
            }
        }
        std::future::pending().await
    }

    async fn write(&self, line: Bytes) -> ApiResult<()> {
        let _turn = self.live.input.lock().await;
        let command = &self.live.command.borrow().clone();
        let place = Place::of(&self.app).await?;
        let status = place.run(|client| async move { client.command(command).await }).await?;
        let offset = status.stdin_offset;
        // Bytes that were accepted before the connection broke are skipped.
        let written = place.run(|client| {
            let body = full_body(line.clone());
            async move { client.stdin(command, offset, false, body).await }
        });
        written.await?;
        Ok(())
    }
}
