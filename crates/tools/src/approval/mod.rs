//! Whether a call may be made: asked before every one, of whatever tool. Rules say so, or a person does.

mod by_rules;
mod command;
mod config;
mod desk;
mod digest;
mod limits;
mod path;
mod pattern;
mod rules;
mod settings;
mod verdict;
mod words;

#[cfg(test)]
mod desk_tests;
#[cfg(test)]
mod rules_tests;

use async_trait::async_trait;
use serde_json::Value;

use crate::ToolError;
pub use by_rules::ByRules;
pub use config::Approvals;
pub use desk::{Answer, Desk, DeskError, Question};
pub use digest::digest;
pub use rules::Rules;
pub use settings::{ApprovalConfig, RuleConfig};
pub use verdict::Verdict;

/// What the rules say about a call, and which of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub because: String,
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub session: &'a str,
    pub tool: &'static str,
    /// As its schema allows it.
    pub input: &'a Value,
    /// Told to whoever called, while a person is asked.
    pub waiting: &'a (dyn Fn(Value) + Send + Sync),
}

#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits as long as it takes to know; dropping the future withdraws the question.
    async fn allow(&self, call: &Call<'_>) -> Result<(), ToolError>;
}

/// Where nobody is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysYes;

#[async_trait]
impl Approver for AlwaysYes {
    async fn allow(&self, _call: &Call<'_>) -> Result<(), ToolError> {
        Ok(())
    }
}
