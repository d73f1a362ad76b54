//! A model behind a server: which one, and what it says, whatever protocol that came in.

use std::fmt;

use http::Uri;
use sandbank_tools::Tool;
use serde_json::Value;

use crate::conversation::Conversation;
use crate::error::ModelError;
use crate::parts::FinishReason;
use crate::server::{Answer, Server};
use crate::{anthropic, chat_completions};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Chat completions, as OpenAI's API and the many that are compatible with it have them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

#[derive(Debug, Clone)]
pub struct ModelSettings {
    pub provider: Provider,
    /// As the provider's own clients want it.
    pub base_url: Uri,
    pub model: String,
    /// None: the server wants none.
    pub key: Option<ApiKey>,
    /// The variable that it is in.
    pub key_env: String,
    /// Whether it can call tools.
    pub tools: bool,
    /// Of one answer; none: the provider's own, or where it has none, a usual one.
    pub max_tokens: Option<u64>,
    /// What the person who runs the server wants the model to be told first.
    pub system_prompt: Option<String>,
}

/// Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// One thing that a model says. Calls are numbered by the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Text(String),
    Thinking(String),
    /// Of the thinking before.
    Signature(String),
    Redacted(String),
    /// What follows is another piece of text or thinking.
    BlockEnd,
    CallStart {
        index: u64,
        id: String,
        name: String,
    },
    CallInput {
        index: u64,
        piece: String,
    },
    Finished(FinishReason),
}

/// Reads the events of one answer.
pub(crate) trait Decoder: Send {
    /// Whether the answer is over.
    fn read(&mut self, data: &str, said: &mut Vec<Said>) -> Result<bool, ModelError>;
}

pub struct Model {
    settings: ModelSettings,
    server: Server,
}

impl Model {
    /// Fails where this machine has no certificates.
    pub fn new(settings: ModelSettings) -> std::io::Result<Self> {
        Ok(Self { server: Server::new()?, settings })
    }

    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Asks for the next turn.
    pub(crate) async fn ask(
        &self,
        conversation: &Conversation,
        tools: &[Tool],
    ) -> Result<Answer, ModelError> {
        let key = self.settings.key.clone();
        let (request, decoder): (_, Box<dyn Decoder>) = match self.settings.provider {
            Provider::OpenAi => (
                chat_completions::request(&self.settings, conversation, tools),
                Box::new(chat_completions::Reader::new(key)),
            ),
            Provider::Anthropic => (
                anthropic::request(&self.settings, conversation, tools),
                Box::new(anthropic::Reader::new(key)),
            ),
        };
        self.server.ask(&request, decoder, self.settings.key.as_ref()).await
    }
}

/// What a provider is sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) url: String,
    /// The key among them is marked as secret.
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
}

/// The sentence in a provider's error, whichever of the usual shapes it has.
pub(crate) fn error_message(value: &Value) -> Option<&str> {
    let error = value.get("error")?;
    error.get("message").and_then(Value::as_str).or_else(|| error.as_str())
}
