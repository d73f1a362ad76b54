//! Server-sent events as these clients read them: a name and one line of JSON, with a space after
//! each colon, and always as one piece. One client forgets the name at the end of a network read.

use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::script::Outcome;
use crate::error::ApiError;

pub(super) const SILENCE: &[u8] = b": heartbeat\n\n";

/// Only for the documentation: one event, as a reader of such streams takes it apart.
#[derive(ToSchema)]
#[schema(as = ExecEvent)]
#[allow(dead_code, reason = "describes what `Event` writes")]
pub(super) struct EventView {
    /// `chunk`, `done` or `error`.
    event: String,
    /// JSON: `{"chunk","timestamp"}`, `{"exit_code","cwd","duration_ms","truncated"}` or
    /// `{"error","error_code"}`.
    data: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Event<'a> {
    Chunk {
        chunk: &'a str,
        /// Unix time in milliseconds.
        timestamp: u64,
    },
    Done {
        exit_code: i32,
        cwd: &'a str,
        duration_ms: u64,
        /// The reader was too slow for some of the output.
        truncated: bool,
    },
    Error {
        error: &'a str,
        error_code: &'a str,
    },
}

impl Event<'_> {
    pub(super) fn encode(&self) -> Bytes {
        let name = match self {
            Self::Chunk { .. } => "chunk",
            Self::Done { .. } => "done",
            Self::Error { .. } => "error",
        };
        let data = serde_json::to_string(self).expect("plain data");
        format!("event: {name}\ndata: {data}\n\n").into()
    }
}

pub(super) fn done(outcome: &Outcome, truncated: bool) -> Bytes {
    let Outcome { exit_code, cwd, duration_ms } = outcome;
    let (exit_code, duration_ms) = (*exit_code, *duration_ms);
    Event::Done { exit_code, cwd, duration_ms, truncated }.encode()
}

pub(super) fn error(error: &ApiError) -> Bytes {
    let code = super::error::code(error);
    Event::Error { error: &error.message, error_code: code }.encode()
}

/// Pieces of at most `limit` bytes, cut between characters.
pub(super) fn pieces(mut text: &str, limit: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(limit));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_two_lines_and_an_empty_one() {
        let chunk = Event::Chunk { chunk: "a\nb", timestamp: 5 };
        let wire = "event: chunk\ndata: {\"chunk\":\"a\\nb\",\"timestamp\":5}\n\n";
        assert_eq!(chunk.encode(), wire);
    }

    #[test]
    fn pieces_are_short_and_cut_between_characters() {
        let text = "aé€😀".repeat(10);
        let cut: Vec<&str> = pieces(&text, 5).collect();
        assert_eq!(cut.concat(), text);
        assert!(cut.iter().all(|piece| piece.len() <= 5));
        assert_eq!(pieces("", 5).count(), 0);
    }
}
