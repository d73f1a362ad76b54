//! Why a request to a runner failed.

use sandbank_protocol::{Fault, FrameError};

use crate::Obstacle;
use crate::limits::MAX_ERROR_CHARS;

#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The runner understood and refused.
    #[error(transparent)]
    Refused(#[from] Fault),
    /// The connection is gone; the runner may well be alive.
    #[error("the channel to the sandbox broke: {0}")]
    Broken(String),
    #[error("the sandbox did not answer within {0:?}")]
    TimedOut(std::time::Duration),
    /// The runner said something that the protocol does not allow.
    #[error("the sandbox's runner broke the protocol: {0}")]
    Violation(String),
    #[error("the sandbox's runner speaks protocol {theirs}, this daemon speaks {ours}")]
    Incompatible { theirs: u32, ours: u32 },
    /// It never came to the runner, or the answer is not the runner's.
    #[error("{0}")]
    Stopped(Obstacle),
}

impl ChannelError {
    pub(crate) fn broken(text: &str) -> Self {
        Self::Broken(tame(text))
    }

    pub(crate) fn violation(text: &str) -> Self {
        Self::Violation(tame(text))
    }

    /// Whether a new connection may help.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::TimedOut(_))
    }
}

impl From<hyper::Error> for ChannelError {
    fn from(error: hyper::Error) -> Self {
        Self::broken(&chain(&error))
    }
}

impl From<FrameError> for ChannelError {
    fn from(error: FrameError) -> Self {
        Self::violation(&error.to_string())
    }
}

/// Parts of the text may be the runner's own words: bounded, and nothing that ends a log line.
fn tame(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.take(MAX_ERROR_CHARS).collect()
}

/// hyper's own text rarely names the cause; its sources do.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
