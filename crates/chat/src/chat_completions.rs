//! OpenAI's chat completions, and those of the many servers that are compatible with them.

use http::{HeaderMap, HeaderValue, header};
use sandbank_tools::Tool;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conversation::{Block, Conversation, Turn};
use crate::error::{ModelError, told};
use crate::model::{ApiKey, Decoder, ModelSettings, Request, Said, error_message};
use crate::parts::FinishReason;

pub(crate) fn request(
    settings: &ModelSettings,
    conversation: &Conversation,
    tools: &[Tool],
) -> Request {
    let base = settings.base_url.to_string();
    let mut body = json!({
        "model": settings.model,
        "stream": true,
        "messages": messages(conversation),
    });
    if let Some(most) = settings.max_tokens {
        body["max_tokens"] = most.into();
    }
    if !tools.is_empty() {
        body["tools"] = tools
            .iter()
            .map(|tool| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.input,
                }})
            })
            .collect();
    }
    let mut headers = HeaderMap::new();
    let bearer = settings.key.as_ref().map(|key| format!("Bearer {}", key.expose()));
    if let Some(mut value) = bearer.and_then(|text| HeaderValue::try_from(text).ok()) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    let url = format!("{}/chat/completions", base.trim_end_matches('/'));
    Request { url, headers, body }
}

fn messages(conversation: &Conversation) -> Vec<Value> {
    let mut messages = vec![json!({ "role": "system", "content": conversation.system })];
    for turn in &conversation.turns {
        match turn {
            Turn::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Turn::Assistant(blocks) => messages.push(assistant(blocks)),
            Turn::Results(results) => messages.extend(results.iter().map(|result| {
                json!({ "role": "tool", "tool_call_id": result.id, "content": result.output })
            })),
        }
    }
    messages
}

fn assistant(blocks: &[Block]) -> Value {
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.clone()),
        _ => None,
    };
    let text: String = blocks.iter().filter_map(text).collect();
    let call = |block: &Block| match block {
        Block::Call(call) => Some(json!({
            "id": call.id,
            "type": "function",
            "function": { "name": call.name, "arguments": call.input.to_string() },
        })),
        _ => None,
    };
    let calls: Vec<Value> = blocks.iter().filter_map(call).collect();
    let content = if text.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

/// An answer may end without `[DONE]`, but not without a reason.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Calls that have begun; the place of each is the number it is told by.
    begun: Vec<Begun>,
    finished: bool,
    /// Never told, whatever the server says.
    key: Option<ApiKey>,
}

/// A call, as its server calls it.
#[derive(Debug)]
struct Begun {
    index: Option<u64>,
    id: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    /// Some servers send one of these, some the other, some the same text in both.
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Default, Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

impl Decoder for Reader {
    fn read(&mut self, data: &str, said: &mut Vec<Said>) -> Result<bool, ModelError> {
        if data == "[DONE]" {
            return if self.finished { Ok(true) } else { Err(ModelError::BrokenOff) };
        }
        let value: Value =
            serde_json::from_str(data).map_err(|_| ModelError::Nonsense("it is not JSON"))?;
        if let Some(message) = error_message(&value) {
            return Err(ModelError::Failed(told(message, self.key.as_ref())));
        }
        let chunk: Chunk = serde_json::from_value(value)
            .map_err(|_| ModelError::Nonsense("it is not a completion"))?;
        for choice in chunk.choices.into_iter().take(1) {
            let delta = choice.delta.unwrap_or_default();
            let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
            let thinking = filled(delta.reasoning_content).or(filled(delta.reasoning));
            said.extend(thinking.map(Said::Thinking));
            said.extend(filled(delta.content).map(Said::Text));
            said.extend(filled(delta.refusal).map(Said::Text));
            for call in delta.tool_calls.unwrap_or_default() {
                self.call(call, said);
            }
            // An empty one is no reason: some servers send it with every piece.
            if let Some(reason) = filled(choice.finish_reason)
                && !std::mem::replace(&mut self.finished, true)
            {
                said.push(Said::Finished(finish_reason(&reason)));
            }
        }
        // Not all servers say `[DONE]`, and after the reason nothing is said that matters here.
        Ok(self.finished)
    }
}

impl Reader {
    pub(crate) fn new(key: Option<ApiKey>) -> Self {
        Self { key, ..Self::default() }
    }

    fn call(&mut self, call: CallDelta, said: &mut Vec<Said>) {
        let function = call.function.unwrap_or_default();
        let (id, name) = (call.id.unwrap_or_default(), function.name.unwrap_or_default());
        let known = self.known(call.index, &id, &name);
        let place = known.unwrap_or(self.begun.len());
        let index = place as u64;
        if known.is_none() {
            self.begun.push(Begun { index: call.index, id: id.clone() });
            said.push(Said::CallStart { index, id, name });
        }
        if let Some(piece) = function.arguments.filter(|piece| !piece.is_empty()) {
            said.push(Said::CallInput { index, piece });
        }
    }

    /// The call that a piece belongs to; none where it begins one. Some servers leave the number out
    /// and send each call whole, and some give all of those the same number. An id alone begins
    /// nothing: some make up a new one for every piece.
    fn known(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let last = match index {
            Some(_) => self.begun.iter().rposition(|call| call.index == index)?,
            None => self.begun.len().checked_sub(1)?,
        };
        let is_whole = match index {
            Some(_) => !name.is_empty() && !id.is_empty() && id != self.begun[last].id,
            None => !name.is_empty(),
        };
        (!is_whole).then_some(last)
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
