//! Bounds of a chat, with what happens at each.

use std::time::Duration;

/// Answers of the model to one message: with a shell, and without any tool. The last one's calls are
/// done, and the chat ends there.
pub const STEPS_WITH_BASH: usize = 20;
pub const STEPS_WITHOUT_TOOLS: usize = 5;

/// A longer request is refused, and so is one with more messages or parts.
pub const MAX_CHAT_BYTES: usize = 8 << 20;
pub(crate) const MAX_MESSAGES: usize = 2_000;
pub(crate) const MAX_PARTS: usize = 20_000;

/// A longer name of a chat is refused.
pub(crate) const MAX_SESSION_NAME_BYTES: usize = 128;

/// Of the model's server: a longer event ends the answer with an error, and so does more text,
/// input of one call, or calls, in one answer.
pub(crate) const MAX_EVENT_BYTES: usize = 1 << 20;
pub(crate) const MAX_ANSWER_BYTES: usize = 8 << 20;
pub(crate) const MAX_INPUT_BYTES: usize = 4 << 20;
pub(crate) const MAX_CALLS: usize = 64;

/// A name of a tool or a call that is longer is none.
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// How long the model's server may take to be connected to, to begin an answer, to say something
/// further, and for all of one answer.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(120);
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(900);

/// A busy server is asked so often in all, after a pause that doubles and that it may lengthen.
pub(crate) const ATTEMPTS: u32 = 3;
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// Of a refusal, so much is read, and so much of its sentence is told.
pub(crate) const MAX_REFUSAL_BYTES: usize = 16 << 10;
pub(crate) const MAX_SHOWN_CHARS: usize = 300;

/// Of one answer, for a provider that wants to be told.
pub(crate) const DEFAULT_MAX_TOKENS: u64 = 8_192;
