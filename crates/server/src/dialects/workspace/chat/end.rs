//! How a conversation ends, and what its client is told.

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use tokio::time::timeout;

use super::super::pty::{NOT_KNOWN, TIMED_OUT};
use crate::limits::{SOCKET_SEND_PATIENCE, VIEWER_CLOSE_PATIENCE};
use crate::terminal::closing::{REVOKED, UNRESPONSIVE};

const AWAY: &str = "the workspace does not answer; come back";
const NOT_STARTED: &str = "the agent could not be started";
const RESTARTING: &str = "the server is restarting";

/// Why a conversation ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client is gone without a word.
    Gone,
    /// The client said so.
    Left,
    /// It takes nothing of what it is sent, or does not answer.
    Unresponsive,
    /// There is no program to talk to.
    Failed,
    /// It may come back: the way to the program is broken.
    Unreachable,
    /// It may come back: the server is going.
    ShuttingDown,
    /// Its token is no more.
    Revoked,
    /// All is said.
    Closed(&'static str),
}

impl End {
    /// Nobody meant it to end.
    pub(super) fn is_sudden(&self) -> bool {
        matches!(self, Self::Gone | Self::Unresponsive)
    }

    /// The code and the words; none where nobody is there to hear them.
    fn spelled(&self) -> Option<(u16, &'static str)> {
        match self {
            Self::Gone | Self::Left => None,
            Self::Unresponsive => Some((TIMED_OUT, UNRESPONSIVE)),
            Self::Failed => Some((close_code::ERROR, NOT_STARTED)),
            Self::Unreachable => Some((close_code::RESTART, AWAY)),
            Self::ShuttingDown => Some((close_code::RESTART, RESTARTING)),
            Self::Revoked => Some((NOT_KNOWN, REVOKED)),
            Self::Closed(reason) => Some((close_code::NORMAL, reason)),
        }
    }

    pub(super) async fn tell(&self, socket: &mut WebSocket) {
        let Some((code, reason)) = self.spelled() else { return };
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let _ = timeout(VIEWER_CLOSE_PATIENCE, async {
            // Until it has read all of it: what is closed with something unread is reset.
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(_)) = socket.recv().await {}
            }
        })
        .await;
    }
}

pub(super) async fn send(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    match timeout(SOCKET_SEND_PATIENCE, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Gone),
        Err(_) => Err(End::Unresponsive),
    }
}
