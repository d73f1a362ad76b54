//! What was said so far, in no provider's shape.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    pub system: String,
    pub turns: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    User(String),
    Assistant(Vec<Block>),
    /// Of all calls of the turn before.
    Results(Vec<ToolResult>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text(String),
    /// With the provider's own mark, without which it does not take it back.
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that only the provider can read.
    Redacted(String),
    Call(ToolCall),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub input: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    pub id: String,
    pub output: String,
    pub is_error: bool,
}

impl Conversation {
    /// Turns that say nothing are left out: no provider takes them.
    pub(crate) fn push(&mut self, turn: Turn) {
        let says_something = match &turn {
            Turn::User(text) => !text.trim().is_empty(),
            Turn::Assistant(blocks) => blocks.iter().any(Block::says_something),
            Turn::Results(results) => !results.is_empty(),
        };
        if says_something {
            self.turns.push(turn);
        }
    }
}

impl Block {
    pub(crate) fn says_something(&self) -> bool {
        match self {
            Self::Text(text) => !text.trim().is_empty(),
            // Alone it is no answer.
            Self::Thinking { .. } | Self::Redacted(_) => false,
            Self::Call(_) => true,
        }
    }
}
