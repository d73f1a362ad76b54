//! A conversation with a model that has the tools of a sandbox.
//!
//! A [`Conversation`] is what was said, in no provider's shape; a [`Model`] streams what it says
//! next; [`run`] goes back and forth between it and the tools, and tells everything as the
//! [`Part`]s that the AI SDK's clients read. What a model's server says is hostile input.

mod anthropic;
mod chat_completions;
mod conversation;
mod error;
mod explicit;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod model;
mod parts;
mod prompt;
mod run;
mod server;
mod sse;
mod step;
mod ui_messages;

pub use conversation::{Block, Conversation, ToolCall, ToolResult, Turn};
pub use error::{BadChat, ModelError};
pub use explicit::{Explicit, explicit};
pub use limits::{MAX_CHAT_BYTES, STEPS_WITH_BASH, STEPS_WITHOUT_TOOLS};
pub use model::{ApiKey, Model, ModelSettings, Provider};
pub use parts::{Approval, ApprovalStatus, FinishReason, Part, Preparing, Question};
pub use prompt::system_prompt;
pub use run::{Job, run};
pub use ui_messages::{ChatRequest, ChatSession};
