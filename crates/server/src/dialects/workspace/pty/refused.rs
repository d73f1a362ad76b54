//! Connections that get no terminal: what they are told, and the code they are closed with.

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::StreamExt;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::place::Refusal;
use super::template::PROVIDERS;
use crate::error::ApiError;
use crate::limits::{MAX_SHOWN_PROVIDER_CHARS, VIEWER_CLOSE_PATIENCE};
use crate::request::RequestId;
use crate::streams::TOO_MANY_STREAMS;

pub(super) const NOT_FOUND: u16 = 4001;
pub(super) const UNKNOWN_PROVIDER: u16 = 4003;
pub(super) const INVALID: u16 = 4004;
pub(super) const TOO_MUCH: u16 = 4005;
pub(super) const UNAVAILABLE: u16 = 4006;
/// "Authentication required"; of a token that was revoked.
pub(in crate::dialects::workspace) const NOT_KNOWN: u16 = 4008;
pub(in crate::dialects::workspace) const TIMED_OUT: u16 = 4007;

pub(super) const AWAY: &str = "the workspace does not answer";

/// As the original says it.
pub(super) const START_FAILED: &str = "PTY start failed";

#[derive(Debug)]
pub(super) enum Refused {
    UnknownProvider(String),
    BadSession,
    BadNumber,
    /// With what was asked for.
    SessionNotFound(String),
    TooManySessions,
    TooManyConnections,
    /// For this session, if it is known which.
    NotStarted(ApiError),
}

impl Refused {
    /// What is said before the connection is closed, the code, and the reason.
    fn spelled(&self, request_id: &RequestId) -> (Option<Value>, u16, String) {
        let error = |data: &str| {
            let request_id = &*request_id.0;
            json!({ "type": "error", "data": data, "session_id": null, "request_id": request_id })
        };
        match self {
            Self::UnknownProvider(name) => {
                let shown = name.chars().filter(|c| c.is_ascii_graphic());
                let shown: String = shown.take(MAX_SHOWN_PROVIDER_CHARS).collect();
                let [first, second] = PROVIDERS;
                let reason =
                    format!("Unknown provider: {shown}. Available: ['{first}', '{second}']");
                (None, UNKNOWN_PROVIDER, reason)
            }
            Self::BadSession => (None, INVALID, "Invalid session_id (must be a UUID)".to_owned()),
            Self::BadNumber => (None, INVALID, "Invalid after (must be a number)".to_owned()),
            Self::SessionNotFound(asked) => {
                let frame = json!({ "type": "session_not_found", "session_id": asked });
                (Some(frame), NOT_FOUND, "Session not found".to_owned())
            }
            Self::TooManySessions => {
                let reason = "Maximum sessions reached";
                (Some(error(reason)), TOO_MUCH, reason.to_owned())
            }
            Self::TooManyConnections => (None, TOO_MUCH, "Too many connections".to_owned()),
            Self::NotStarted(cause) => {
                let code = match cause.status {
                    StatusCode::TOO_MANY_REQUESTS => TOO_MUCH,
                    // All streams of the server are in use; the workspace is there.
                    _ if cause.code == TOO_MANY_STREAMS => TOO_MUCH,
                    StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
                    StatusCode::GATEWAY_TIMEOUT => TIMED_OUT,
                    StatusCode::BAD_REQUEST => INVALID,
                    _ => close_code::ERROR,
                };
                (Some(error(&cause.message)), code, START_FAILED.to_owned())
            }
        }
    }

    pub(super) async fn tell(self, mut socket: WebSocket, request_id: &RequestId) {
        let (said, code, reason) = self.spelled(request_id);
        tracing::info!(code, reason, "a terminal was refused");
        let frame = CloseFrame { code, reason: reason.into() };
        let _ = timeout(VIEWER_CLOSE_PATIENCE, async {
            if let Some(said) = said {
                socket.send(Message::Text(said.to_string().into())).await?;
            }
            socket.send(Message::Close(Some(frame))).await?;
            while let Some(Ok(_)) = socket.next().await {}
            Ok::<_, axum::Error>(())
        })
        .await;
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::NotStarted(error)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::NotStarted(refusal.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_fits_a_close_frame_and_says_nothing_that_was_not_asked() {
        let id = RequestId("r".into());
        let long = Refused::UnknownProvider("\u{1f600}\n\u{1b}[31m".repeat(1000));
        let (said, code, reason) = long.spelled(&id);
        assert_eq!((said, code), (None, 4003));
        assert!(reason.len() <= 123, "{reason}");
        assert!(!reason.contains('\n') && !reason.contains('\u{1b}'), "{reason:?}");
        let (said, code, reason) = Refused::TooManySessions.spelled(&id);
        let error = json!({ "type": "error", "data": "Maximum sessions reached",
            "session_id": null, "request_id": "r" });
        assert_eq!((said, code, reason.as_str()), (Some(error), 4005, "Maximum sessions reached"));
        for (status, code, close) in [
            (StatusCode::SERVICE_UNAVAILABLE, "workspace_unavailable", 4006),
            (StatusCode::BAD_GATEWAY, "workspace_unavailable", 4006),
            (StatusCode::GATEWAY_TIMEOUT, "workspace_unavailable", 4007),
            (StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_STREAMS, 4005),
            (StatusCode::TOO_MANY_REQUESTS, "at_limit", 4005),
            (StatusCode::INTERNAL_SERVER_ERROR, "internal", 1011),
        ] {
            let refused = Refused::NotStarted(ApiError::new(status, code, "why"));
            let (said, told, reason) = refused.spelled(&id);
            assert_eq!((told, reason.as_str()), (close, START_FAILED), "{status} {code}");
            assert_eq!(said.unwrap()["data"], "why");
        }
        let (_, code, reason) = Refused::UnknownProvider("nope".to_owned()).spelled(&id);
        let expected = "Unknown provider: nope. Available: ['shell', 'claude']";
        assert_eq!((code, reason.as_str()), (4003, expected));
    }
}
