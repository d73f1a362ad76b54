//! A terminal over a WebSocket: bytes as binary messages, everything else as JSON.

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::Response;
use sandbank_protocol::PtySize;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::signals::Signal;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{CommandPath, Query};
use crate::limits::MAX_VIEWER_MESSAGE_BYTES;
use crate::request::Carried;
use crate::terminal::viewer::{Asked, Spelling, view};
use crate::terminal::{Beginning, Ground, Shown, Terminal};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AttachQuery {
    /// Begin with the output numbered above this; everything that is kept where it is left out.
    after: Option<u64>,
    /// Begin with the screen as it is, of a command that was started with one.
    #[serde(default)]
    repaint: bool,
}

impl AttachQuery {
    fn beginning(&self) -> ApiResult<Beginning> {
        match (self.after, self.repaint) {
            (None, true) => Ok(Beginning::Repaint),
            (after, false) => Ok(Beginning::After(after.unwrap_or(0))),
            (Some(_), true) => {
                let message = "a viewer begins with a repaint or after a number, not both";
                Err(ApiError::bad_request("bad_query", message))
            }
        }
    }
}

/// Join a command's terminal: a WebSocket, as many as there are viewers.
///
/// Binary messages are input, and output: each is one numbered piece, the first after `attached`
/// or `screen` being the one after their `seq`, so that whoever counts them can come back with
/// `after`. Text messages are JSON. From the client: `{"type":"resize","rows":24,"cols":80}`,
/// `{"type":"signal","signal":"INT"}`, `{"type":"ping"}`. From the server: `attached` with `seq`,
/// `rows` and `cols`; `screen` with `seq`, `rows`, `cols`, `title` and `alternate`, followed by one
/// binary message that paints it, at the beginning and whenever this viewer fell behind; `lagged`
/// with `seq` and `droppedBytes` where there is no screen to paint; `error` with `message`; `pong`;
/// `ended` with `ending` and `exitCode`. Closed with 1000 after the ending, 1012 when the daemon
/// goes, 4400 after a message that is not understood, 4401 when the token is revoked, 4408 when nothing comes back in time, 4413
/// when more is typed than the program takes, 4503 when the sandbox does not answer, 1011 else.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{commandId}/attach", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path), AttachQuery),
    responses((status = 101, description = "the terminal"), (status = "default", body = ErrorBody)))]
pub(super) async fn attach(
    State(app): State<App>,
    caller: Caller,
    path: CommandPath,
    Query(query): Query<AttachQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let upgrade = upgrade.map_err(|rejection| {
        ApiError::bad_request("websocket_required", rejection.body_text())
            .with_hint("open it with a WebSocket client; without one, use logs and stdin")
    })?;
    let CommandPath { sandbox, command } = path;
    let ground = Ground::Sandbox(sandbox);
    let terminal = Terminal::open(app, ground, command, query.beginning()?).await?;
    let hands = terminal.hands(&caller.name);
    let upgrade = upgrade.max_message_size(MAX_VIEWER_MESSAGE_BYTES);
    let carried = Carried::now();
    let viewing = |socket| async move { drop(view(socket, terminal, hands, Own, &caller).await) };
    Ok(upgrade.on_upgrade(|socket| carried.over(Box::pin(viewing(socket)))))
}

/// Our own frames.
struct Own;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
enum Control {
    Resize { rows: u16, cols: u16 },
    Signal { signal: Signal },
    Ping {},
}

impl Spelling for Own {
    fn attached(&self, terminal: &Terminal) -> Vec<Message> {
        let size = terminal.size();
        let (rows, cols) = (size.map(|(rows, _)| rows), size.map(|(_, cols)| cols));
        vec![text(&json!({"type": "attached", "seq": terminal.seq(), "rows": rows, "cols": cols}))]
    }

    fn shown(&self, shown: &Shown) -> Vec<Message> {
        match shown {
            Shown::Screen(painting) => {
                let screen = &painting.screen;
                let head = json!({
                    "type": "screen", "seq": screen.seq, "rows": screen.rows, "cols": screen.cols,
                    "title": screen.title, "alternate": screen.alternate,
                });
                vec![text(&head), Message::Binary(painting.repaint.clone())]
            }
            Shown::Output { data, .. } => vec![Message::Binary(data.clone())],
            Shown::Missed { seq, bytes } => {
                vec![text(&json!({"type": "lagged", "seq": seq, "droppedBytes": bytes}))]
            }
            Shown::Ended(ending) => {
                let exit_code = super::wait::exit_code(ending);
                vec![text(&json!({"type": "ended", "ending": ending, "exitCode": exit_code}))]
            }
        }
    }

    fn refused(&self, why: String) -> Option<Message> {
        Some(text(&json!({"type": "error", "message": why})))
    }

    fn pong(&self) -> Message {
        text(&json!({"type": "pong"}))
    }

    fn heard(&self, message: Message) -> Result<Asked, String> {
        let control = match message {
            Message::Binary(bytes) => return Ok(Asked::Input(bytes)),
            Message::Text(text) => serde_json::from_str(text.as_str()),
            _ => return Ok(Asked::Nothing),
        };
        match control.map_err(|error| error.to_string())? {
            Control::Resize { rows, cols } => Ok(Asked::Resize(PtySize { rows, cols })),
            Control::Signal { signal } => {
                signal.number().map(Asked::Signal).map_err(|error| error.message)
            }
            Control::Ping {} => Ok(Asked::Ping),
        }
    }
}

fn text(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn heard(text: &str) -> Result<Asked, String> {
        Own.heard(Message::Text(text.into()))
    }

    #[test]
    fn controls_are_read_and_anything_else_is_refused() {
        let size = PtySize { rows: 9, cols: 70 };
        assert_eq!(heard(r#"{"type":"resize","rows":9,"cols":70}"#), Ok(Asked::Resize(size)));
        assert_eq!(heard(r#"{"type":"signal","signal":"INT"}"#), Ok(Asked::Signal(2)));
        assert_eq!(heard(r#"{"type":"signal","signal":15}"#), Ok(Asked::Signal(15)));
        assert_eq!(heard(r#"{"type":"ping"}"#), Ok(Asked::Ping));
        let typed = Message::Binary(Bytes::from_static(b"ls\r"));
        assert_eq!(Own.heard(typed), Ok(Asked::Input(Bytes::from_static(b"ls\r"))));
        for bad in [
            "ls",
            "{}",
            r#"{"type":"paste"}"#,
            r#"{"type":"resize","rows":-1,"cols":70}"#,
            r#"{"type":"resize","rows":1,"cols":70,"depth":3}"#,
            r#"{"type":"signal","signal":"NOPE"}"#,
        ] {
            assert!(heard(bad).is_err(), "{bad}");
        }
    }
}
