//! The frames of `/ws/pty`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::ws::{Message, close_code};
use bytes::Bytes;
use sandbank_protocol::{Ending, PtySize};
use serde_json::{Map, Value, json};

use super::super::sessions::Live;
use super::characters::Characters;
use super::history;
use super::refused::{AWAY, INVALID, NOT_KNOWN, START_FAILED, TIMED_OUT, TOO_MUCH, UNAVAILABLE};
use crate::request::RequestId;
use crate::terminal::closing::Closing;
use crate::terminal::viewer::{Asked, Spelling};
use crate::terminal::{Shown, Terminal};

/// As a runner says that there is no such program, and as shells do.
const COMPLAINT: &str = "sandbank: cannot run ";
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

pub(super) struct Frames {
    session_id: String,
    request_id: RequestId,
    live: Arc<Live>,
    /// The client counts frames, and has these.
    seen: Option<u64>,
    history_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    characters: Characters,
    /// Of the last output.
    seq: u64,
    /// The end of what was written before the client came.
    written: Option<Vec<u8>>,
    /// All that was said until now was that nothing can be said.
    complaint: Option<(u64, String)>,
    has_begun: bool,
    has_failed: bool,
}

impl Frames {
    pub(super) fn new(
        session_id: String,
        request_id: RequestId,
        live: Arc<Live>,
        seen: Option<u64>,
        written: Option<Vec<u8>>,
        history_bytes: usize,
    ) -> Self {
        let state = Mutex::new(State { written, ..State::default() });
        Self { session_id, request_id, live, seen, history_bytes, state }
    }

    fn output(&self, seq: u64, data: &str) -> Message {
        let mut frame = json!({ "type": "output", "data": data, "session_id": self.session_id });
        if self.seen.is_some() {
            frame["seq"] = json!(seq);
        }
        text(&frame)
    }

    fn wrote(&self, state: &mut State, seq: u64, data: &[u8]) -> Vec<Message> {
        state.seq = seq;
        let words = state.characters.push(data);
        if self.seen.is_some_and(|seen| seq <= seen) || words.is_empty() {
            return Vec::new();
        }
        if !state.has_begun && words.starts_with(COMPLAINT) {
            state.complaint = Some((seq, words));
            state.has_begun = true;
            return Vec::new();
        }
        state.has_begun = true;
        let complaint = state.complaint.take().map(|(seq, words)| self.output(seq, &words));
        complaint.into_iter().chain([self.output(seq, &words)]).collect()
    }

    fn painted(&self, state: &mut State, seq: u64, repaint: &[u8]) -> Vec<Message> {
        state.has_begun = true;
        state.characters = Characters::default();
        match state.written.take() {
            Some(written) => {
                let whole = history::joined(&written, repaint, self.history_bytes);
                let data = state.characters.push(&whole);
                vec![text(&json!({ "type": "history", "data": data }))]
            }
            // Nothing was ever shown.
            None if seq == 0 => Vec::new(),
            None => {
                let data = state.characters.push(repaint);
                let mut frame =
                    json!({ "type": "output", "data": data, "session_id": self.session_id });
                if self.seen.is_some() {
                    frame["seq"] = json!(seq);
                    frame["repaint"] = json!(true);
                }
                vec![text(&frame)]
            }
        }
    }

    fn ended(&self, state: &mut State, ending: &Ending) -> Vec<Message> {
        let code = ending.exit_code();
        if !self.live.is_over.swap(true, Ordering::Relaxed) {
            tracing::info!(session = %self.live.name.id, code, "a terminal ended");
        }
        if let (Some((_, why)), Some(CANNOT_RUN | NOT_FOUND)) = (&state.complaint, code) {
            state.has_failed = true;
            return vec![text(&json!({
                "type": "error", "data": why.trim_end(), "session_id": self.session_id,
                "request_id": &*self.request_id.0,
            }))];
        }
        let complaint = state.complaint.take().map(|(seq, words)| self.output(seq, &words));
        let seq = state.seq;
        let rest = state.characters.finish().map(|rest| self.output(seq, &rest.to_string()));
        let exit = json!({ "type": "exit", "code": code, "session_id": self.session_id });
        complaint.into_iter().chain(rest).chain([text(&exit)]).collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spelling for Frames {
    fn attached(&self, _terminal: &Terminal) -> Vec<Message> {
        vec![text(&json!({ "type": "session", "session_id": self.session_id }))]
    }

    fn shown(&self, shown: &Shown) -> Vec<Message> {
        self.live.touch();
        let state = &mut *self.state();
        match shown {
            Shown::Screen(painting) => self.painted(state, painting.screen.seq, &painting.repaint),
            Shown::Output { seq, data } => self.wrote(state, *seq, data),
            Shown::Missed { seq, bytes } => {
                state.characters = Characters::default();
                let words = format!("\r\n[{bytes} bytes of output are no longer kept]\r\n");
                vec![self.output(*seq, &words)]
            }
            Shown::Ended(ending) => self.ended(state, ending),
        }
    }

    /// The original has no frame for it.
    fn refused(&self, why: String) -> Option<Message> {
        tracing::debug!(why, "a terminal did not do what was asked");
        None
    }

    fn pong(&self) -> Message {
        text(&json!({ "type": "pong" }))
    }

    fn heard(&self, message: Message) -> Result<Asked, String> {
        let asked = match message {
            Message::Binary(bytes) => Asked::Input(bytes),
            Message::Text(text) => match serde_json::from_str(text.as_str()) {
                Ok(Value::Object(fields)) => read(&fields),
                Ok(_) | Err(_) => Asked::Input(text.into()),
            },
            _ => Asked::Nothing,
        };
        if matches!(asked, Asked::Input(_) | Asked::Resize(_)) {
            self.live.touch();
        }
        Ok(asked)
    }

    fn close_code(&self, closing: &Closing) -> u16 {
        match closing {
            Closing::Ended => close_code::ERROR,
            Closing::Misunderstood(_) => INVALID,
            Closing::InputOverflow => TOO_MUCH,
            Closing::Unreachable => UNAVAILABLE,
            Closing::Unresponsive => TIMED_OUT,
            Closing::Revoked => NOT_KNOWN,
            Closing::ShuttingDown | Closing::Internal(_) | Closing::InputClosed => closing.code(),
        }
    }

    fn close_reason(&self, closing: &Closing) -> String {
        match closing {
            Closing::Ended => START_FAILED.to_owned(),
            Closing::Unreachable => AWAY.to_owned(),
            _ => closing.reason(),
        }
    }

    /// Who counts frames is sent them all.
    fn catches_up(&self) -> bool {
        self.seen.is_none()
    }

    fn stays(&self) -> bool {
        !self.state().has_failed
    }
}

/// A message of the original's kinds; others ask for nothing.
fn read(fields: &Map<String, Value>) -> Asked {
    let number = |name: &str, default: u16| match fields.get(name).and_then(Value::as_i64) {
        Some(number) => u16::try_from(number.clamp(1, PtySize::MAX.into())).unwrap_or(default),
        None => default,
    };
    match fields.get("type").and_then(Value::as_str) {
        Some("input") => match fields.get("data").and_then(Value::as_str) {
            Some(data) => Asked::Input(Bytes::copy_from_slice(data.as_bytes())),
            None => Asked::Nothing,
        },
        Some("resize") => {
            Asked::Resize(PtySize { rows: number("rows", 24), cols: number("cols", 80) })
        }
        Some("ping") => Asked::Ping,
        _ => Asked::Nothing,
    }
}

fn text(frame: &Value) -> Message {
    Message::Text(frame.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(frame: Value) -> Asked {
        let Value::Object(fields) = frame else { panic!("no object") };
        read(&fields)
    }

    #[test]
    fn messages_are_read_as_the_original_reads_them() {
        let input = asked(json!({ "type": "input", "data": "ls\r" }));
        assert_eq!(input, Asked::Input(Bytes::from_static(b"ls\r")));
        for (rows, cols, size) in [
            (json!(30), json!(100), (30, 100)),
            (json!(0), json!(-5), (1, 1)),
            (json!(9_999_999_999_i64), json!(501), (500, 500)),
            (json!("x"), json!(null), (24, 80)),
        ] {
            let resized = asked(json!({ "type": "resize", "rows": rows, "cols": cols }));
            assert_eq!(resized, Asked::Resize(PtySize { rows: size.0, cols: size.1 }));
        }
        assert_eq!(
            asked(json!({ "type": "resize" })),
            Asked::Resize(PtySize { rows: 24, cols: 80 })
        );
        assert_eq!(asked(json!({ "type": "ping" })), Asked::Ping);
        for other in [json!({}), json!({ "type": "paste" }), json!({ "type": "input", "data": 5 })]
        {
            assert_eq!(asked(other.clone()), Asked::Nothing, "{other}");
        }
    }
}
