//! The JSON lines: requests and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Request {
    Exec { cmd: String, timeout_ms: Option<u64> },
    Read { path: String, max_bytes: Option<u64> },
    Write { path: String, content_base64: String },
}

#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// The request's, as it was.
    pub(super) id: Value,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Outcome {
    Exec { exit_code: i32, cwd: String, output: String, truncated: bool, duration_ms: u64 },
    Read { content_base64: String, truncated: bool },
    Write { ok: bool },
    Error { message: String },
}

/// The id, and the request or why it is none.
pub(super) fn parse(line: &str) -> (Value, Result<Request, String>) {
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return (Value::Null, Err(format!("the request is not JSON: {error}"))),
    };
    let id = value.get("id").cloned().unwrap_or(Value::Null);
    let request = serde_json::from_value(value)
        .map_err(|error| format!("the request is not understood: {error}"));
    (id, request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_their_id_even_when_they_are_wrong() {
        let (id, request) = parse(r#"{"id":"a","type":"exec","cmd":"ls","timeout_ms":5}"#);
        assert_eq!(id, "a");
        assert_eq!(request, Ok(Request::Exec { cmd: "ls".into(), timeout_ms: Some(5) }));
        let (id, request) = parse(r#"{"id":7,"type":"dance"}"#);
        assert_eq!((id, request.is_err()), (7.into(), true));
        assert!(parse("{").1.is_err());
    }

    #[test]
    fn the_committed_requests_are_handled() {
        sandbank_test_support::replay_corpus("requests", |data| {
            let _ = std::str::from_utf8(data).map(parse);
        });
    }

    #[test]
    fn answers_are_flat() {
        let outcome = Outcome::Error { message: "no".into() };
        let text = serde_json::to_string(&Answer { id: "x".into(), outcome }).unwrap();
        assert_eq!(text, r#"{"id":"x","type":"error","message":"no"}"#);
    }
}
