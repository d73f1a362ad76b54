//! The tools of one conversation, as whoever serves them sees them.

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: String,
    /// JSON Schema of its input; strict.
    pub input: Value,
    /// Whether it only looks.
    pub read_only: bool,
}

/// What happens to a call. [`Update::Done`] or [`Update::Failed`] is the last.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// The whole result as far as it is known; each replaces the one before.
    Progress(Value),
    /// What is done so that the call can be made, a line for people: its sandbox is filled.
    Preparing(String),
    /// A person is asked whether it may be made, and this is the question.
    Asked(Value),
    /// The answer was yes; a no is a failure. Whatever comes of the call has nothing to do with it.
    Allowed,
    Done(Value),
    Failed(ToolError),
}

pub type Updates = mpsc::Receiver<Update>;

#[async_trait]
pub trait Toolbox: Send + Sync {
    fn tools(&self) -> Vec<Tool>;

    /// Begins a call. Input that does not fit its schema is refused here; whoever drops the updates
    /// or cancels ends the call, and what it started is killed.
    async fn call(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Updates, ToolError>;

    /// The same with nothing of the output before the end: of long output the beginning is shown.
    async fn call_quietly(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Updates, ToolError>;

    /// The same for who wants to know only how it ended.
    async fn run(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Value, ToolError> {
        let mut updates = self.call_quietly(name, input, cancel).await?;
        last(&mut updates).await
    }
}

/// The end of a call.
pub(crate) async fn last(updates: &mut Updates) -> Result<Value, ToolError> {
    while let Some(update) = updates.recv().await {
        match update {
            Update::Progress(_) | Update::Preparing(_) | Update::Asked(_) | Update::Allowed => {}
            Update::Done(value) => return Ok(value),
            Update::Failed(error) => return Err(error),
        }
    }
    Err(ToolError::Failed("the call ended without a result".to_owned()))
}
