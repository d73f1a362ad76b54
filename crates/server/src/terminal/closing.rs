//! Why a viewer's connection is closed by us, and the code that says so.

use sandbank_channel::ChannelError;

/// To whoever came with a token that was revoked meanwhile.
pub(crate) const REVOKED: &str = "the token was revoked";

/// To whoever takes nothing, or does not answer.
pub(crate) const UNRESPONSIVE: &str = "nothing came back in time";

/// What fits into a close frame beside the code.
const MAX_REASON_BYTES: usize = 123;

/// Codes below 4000 are those of every WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The command has ended, and everything of it was shown.
    Ended,
    /// The daemon is going; another one will go on where this one stopped.
    ShuttingDown,
    Internal(String),
    /// A message that is not understood.
    Misunderstood(String),
    /// The viewer takes nothing of what it is sent, or does not answer.
    Unresponsive,
    /// It typed more than the program takes.
    InputOverflow,
    /// The program takes no more input at all.
    InputClosed,
    /// The sandbox does not answer.
    Unreachable,
    /// The token that it was opened with is no more.
    Revoked,
}

impl Closing {
    pub(crate) fn broken(error: &ChannelError) -> Self {
        Self::Internal(error.to_string())
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Ended => 1000,
            Self::Internal(_) => 1011,
            Self::ShuttingDown => 1012,
            Self::Misunderstood(_) => 4400,
            Self::Revoked => 4401,
            Self::Unresponsive => 4408,
            Self::InputClosed => 4410,
            Self::InputOverflow => 4413,
            Self::Unreachable => 4503,
        }
    }

    pub(crate) fn reason(&self) -> String {
        let text = match self {
            Self::Ended => "the command has ended",
            Self::ShuttingDown => "the daemon is shutting down",
            Self::Internal(_) => "the daemon cannot go on with it",
            Self::Misunderstood(why) => why,
            Self::Unresponsive => UNRESPONSIVE,
            Self::InputOverflow => "more was typed than the program takes",
            Self::InputClosed => "the program takes no more input",
            Self::Unreachable => "the sandbox does not answer",
            Self::Revoked => REVOKED,
        };
        text[..text.floor_char_boundary(MAX_REASON_BYTES)].to_owned()
    }
}
