//! Why a chat cannot go on, in words for the person who reads it.

use thiserror::Error;

use crate::limits::MAX_SHOWN_CHARS;
use crate::model::ApiKey;

/// Of the model's server. None has the key, or more of what the server said than a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    #[error("the model's server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the model's server does not accept the key that is configured")]
    Unauthorized,
    #[error("the model's server is busy ({status}); try again later")]
    Busy { status: u16 },
    #[error("the model's server refused the request ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("the model's server said: {0}")]
    Failed(String),
    #[error("the model's server took too long")]
    TooSlow,
    #[error("the model's answer broke off")]
    BrokenOff,
    #[error("the model's answer makes no sense: {0}")]
    Nonsense(&'static str),
    #[error("the model's answer is too long: {0}")]
    TooLong(&'static str),
}

/// Of the client's request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadChat {
    #[error("the request is not a chat: {0}")]
    Malformed(String),
    #[error("the chat is too long: {0}")]
    TooLong(&'static str),
    #[error(
        "the name of a chat has 1 to 128 characters, letters, digits and . _ : - only; this one does not"
    )]
    BadSession,
}

/// What the model's server said, for the person who chats: never with the key, also not with the part of
/// it that a clip would leave.
pub(crate) fn told(message: &str, key: Option<&ApiKey>) -> String {
    match key.map(ApiKey::expose).filter(|key| !key.is_empty()) {
        Some(key) => clipped(&message.replace(key, "[redacted]")),
        None => clipped(message),
    }
}

/// What a stranger said, as one short line.
pub(crate) fn clipped(text: &str) -> String {
    let printable = |char: char| if char.is_control() { ' ' } else { char };
    text.trim().chars().take(MAX_SHOWN_CHARS).map(printable).collect()
}
