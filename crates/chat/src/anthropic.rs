//! Anthropic's messages.

use http::{HeaderMap, HeaderName, HeaderValue};
use sandbank_tools::Tool;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conversation::{Block, Conversation, Turn};
use crate::error::{ModelError, told};
use crate::limits::DEFAULT_MAX_TOKENS;
use crate::model::{ApiKey, Decoder, ModelSettings, Request, Said, error_message};
use crate::parts::FinishReason;

const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

pub(crate) fn request(
    settings: &ModelSettings,
    conversation: &Conversation,
    tools: &[Tool],
) -> Request {
    let mut body = json!({
        "model": settings.model,
        "stream": true,
        "max_tokens": settings.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        "system": conversation.system,
        "messages": messages(conversation),
    });
    if !tools.is_empty() {
        body["tools"] = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description, "input_schema": tool.input,
                })
            })
            .collect();
    }
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
    let key = settings.key.as_ref().and_then(|key| HeaderValue::try_from(key.expose()).ok());
    if let Some(mut value) = key {
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-api-key"), value);
    }
    // Its own clients leave the version out of the address, others have it in.
    let base = settings.base_url.to_string();
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    Request { url: format!("{base}/v1/messages"), headers, body }
}

fn messages(conversation: &Conversation) -> Vec<Value> {
    let one = |turn: &Turn| match turn {
        Turn::User(text) => json!({ "role": "user", "content": text }),
        Turn::Assistant(blocks) => {
            let content: Vec<Value> = blocks.iter().filter_map(block).collect();
            json!({ "role": "assistant", "content": content })
        }
        Turn::Results(results) => {
            let content: Vec<Value> = results
                .iter()
                .map(|result| {
                    json!({
                        "type": "tool_result",
                        "tool_use_id": result.id,
                        "content": result.output,
                        "is_error": result.is_error,
                    })
                })
                .collect();
            json!({ "role": "user", "content": content })
        }
    };
    conversation.turns.iter().map(one).collect()
}

fn block(block: &Block) -> Option<Value> {
    match block {
        // It takes no text of spaces only.
        Block::Text(text) if text.trim().is_empty() => None,
        Block::Text(text) => Some(json!({ "type": "text", "text": text })),
        Block::Thinking { signature, .. } if signature.is_empty() => None,
        Block::Thinking { text, signature } => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        Block::Redacted(data) => Some(json!({ "type": "redacted_thinking", "data": data })),
        Block::Call(call) => Some(json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": call.input,
        })),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    finished: bool,
    /// Never told, whatever the server says.
    key: Option<ApiKey>,
}

impl Reader {
    pub(crate) fn new(key: Option<ApiKey>) -> Self {
        Self { key, ..Self::default() }
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    ContentBlockStart {
        index: u64,
        content_block: Started,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {},
    MessageDelta {
        delta: MessageDelta,
    },
    MessageStop {},
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Started {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the protocol's own names")]
enum Delta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
}

impl Decoder for Reader {
    fn read(&mut self, data: &str, said: &mut Vec<Said>) -> Result<bool, ModelError> {
        let value: Value =
            serde_json::from_str(data).map_err(|_| ModelError::Nonsense("it is not JSON"))?;
        if value["type"] == "error" {
            let message = error_message(&value).unwrap_or("it does not say why");
            return Err(ModelError::Failed(told(message, self.key.as_ref())));
        }
        let event: Event = serde_json::from_value(value)
            .map_err(|_| ModelError::Nonsense("it is not an event of a message"))?;
        match event {
            Event::ContentBlockStart { index, content_block } => match content_block {
                Started::Text { text } => said.extend(filled(text).map(Said::Text)),
                Started::Thinking { thinking } => {
                    said.extend(filled(thinking).map(Said::Thinking));
                }
                Started::RedactedThinking { data } => said.push(Said::Redacted(data)),
                Started::ToolUse { id, name } => said.push(Said::CallStart { index, id, name }),
                Started::Other => {}
            },
            Event::ContentBlockDelta { index, delta } => match delta {
                Delta::TextDelta { text } => said.extend(filled(text).map(Said::Text)),
                Delta::ThinkingDelta { thinking } => {
                    said.extend(filled(thinking).map(Said::Thinking));
                }
                Delta::SignatureDelta { signature } => said.push(Said::Signature(signature)),
                Delta::InputJsonDelta { partial_json } => {
                    let piece = filled(partial_json);
                    said.extend(piece.map(|piece| Said::CallInput { index, piece }));
                }
                Delta::Other => {}
            },
            Event::ContentBlockStop {} => said.push(Said::BlockEnd),
            Event::MessageDelta { delta } => {
                if let Some(reason) = delta.stop_reason
                    && !std::mem::replace(&mut self.finished, true)
                {
                    said.push(Said::Finished(finish_reason(&reason)));
                }
            }
            Event::MessageStop {} if self.finished => return Ok(true),
            Event::MessageStop {} => return Err(ModelError::BrokenOff),
            Event::Other => {}
        }
        Ok(false)
    }
}

fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
