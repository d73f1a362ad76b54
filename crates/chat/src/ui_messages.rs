//! A request of the AI SDK's clients: the messages as a page shows them, and whose sandbox it is.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::{Block, Conversation, ToolCall, ToolResult, Turn};
use crate::error::{BadChat, clipped};
use crate::limits::{MAX_MESSAGES, MAX_PARTS, MAX_SESSION_NAME_BYTES};
use crate::step::is_name;

/// What the client's transport sends, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRequest {
    /// The transport's own name for the chat; `chatId` wins over it.
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    chat_id: Option<String>,
    #[serde(default)]
    temporary_session_id: Option<String>,
    messages: Vec<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: Role,
    /// Objects with a `type`; those that nobody knows are left alone.
    parts: Vec<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
}

/// Which conversation a sandbox belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatSession {
    Kept(String),
    Temporary(String),
}

impl ChatSession {
    /// The key of its sandbox. Another owner's chat of the same name is another one; owners' names
    /// have no colon.
    pub fn key(&self, owner: &str) -> String {
        match self {
            Self::Kept(id) => format!("chat:{owner}:{id}"),
            Self::Temporary(id) => format!("tmp:{owner}:{id}"),
        }
    }
}

impl ChatRequest {
    pub fn read(body: &[u8]) -> Result<Self, BadChat> {
        let request: Self = serde_json::from_slice(body)
            .map_err(|error| BadChat::Malformed(clipped(&error.to_string())))?;
        if request.messages.len() > MAX_MESSAGES {
            return Err(BadChat::TooLong("it has too many messages"));
        }
        let parts: usize = request.messages.iter().map(|message| message.parts.len()).sum();
        if parts > MAX_PARTS {
            return Err(BadChat::TooLong("its messages have too many parts"));
        }
        match request.messages.last() {
            None => Err(BadChat::Malformed("it has no messages".to_owned())),
            Some(_) => Ok(request),
        }
    }

    /// None where nothing names it: then there is no sandbox to use.
    pub fn session(&self) -> Result<Option<ChatSession>, BadChat> {
        let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
        let kept = || named(&self.chat_id).or_else(|| named(&self.id)).map(ChatSession::Kept);
        let session = named(&self.temporary_session_id).map(ChatSession::Temporary).or_else(kept);
        let is_usable = |name: &str| {
            let allowed = |byte: u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-')
            };
            name.len() <= MAX_SESSION_NAME_BYTES && name.bytes().all(allowed)
        };
        match session {
            Some(ChatSession::Kept(name) | ChatSession::Temporary(name)) if !is_usable(&name) => {
                Err(BadChat::BadSession)
            }
            session => Ok(session),
        }
    }

    /// What the person said last; none where the assistant did.
    pub fn order(&self) -> Option<String> {
        let last = self.messages.last().filter(|message| message.role == Role::User)?;
        Some(last.text())
    }

    /// As it is told to a model. What a client calls the system is added to ours.
    pub fn conversation(self, system: String) -> Conversation {
        let mut conversation = Conversation { system, turns: Vec::new() };
        for message in self.messages {
            match message.role {
                Role::System => {
                    conversation.system.push_str("\n\n");
                    conversation.system.push_str(&message.text());
                }
                Role::User => conversation.push(Turn::User(message.text())),
                Role::Assistant => message.steps(&mut conversation),
            }
        }
        conversation
    }
}

impl Message {
    fn text(&self) -> String {
        let words = self.parts.iter().filter_map(|part| match kind(part) {
            "text" => Some(text_of(part, "text").to_owned()),
            "file" => Some(format!(
                "[a file was attached that cannot be shown here: {}, {}]",
                clipped(text_of(part, "filename")),
                clipped(text_of(part, "mediaType")),
            )),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Each answer of the model with the results of its calls.
    fn steps(self, conversation: &mut Conversation) {
        let (mut blocks, mut results) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let has_calls = !results.is_empty();
            match kind(part) {
                "step-start" => end_step(&mut blocks, &mut results, conversation),
                "text" => {
                    // Text after a call is of the next answer, also where no mark says so.
                    if has_calls {
                        end_step(&mut blocks, &mut results, conversation);
                    }
                    blocks.push(Block::Text(text_of(part, "text").to_owned()));
                }
                other if other == "dynamic-tool" || other.starts_with("tool-") => {
                    if let Some((call, result)) = tool(part, other) {
                        blocks.push(Block::Call(call));
                        results.push(result);
                    }
                }
                _ => {}
            }
        }
        end_step(&mut blocks, &mut results, conversation);
    }
}

fn end_step(
    blocks: &mut Vec<Block>,
    results: &mut Vec<ToolResult>,
    conversation: &mut Conversation,
) {
    conversation.push(Turn::Assistant(std::mem::take(blocks)));
    conversation.push(Turn::Results(std::mem::take(results)));
}

/// A call and what came of it. One whose input never came whole is none.
fn tool(part: &Map<String, Value>, kind: &str) -> Option<(ToolCall, ToolResult)> {
    let name = kind.strip_prefix("tool-").unwrap_or_else(|| text_of(part, "toolName"));
    let id = text_of(part, "toolCallId");
    if !is_name(name) || !is_name(id) {
        return None;
    }
    let (output, is_error) = match text_of(part, "state") {
        "input-streaming" => return None,
        "output-available" => (part.get("output").unwrap_or(&Value::Null).to_string(), false),
        "output-error" => (text_of(part, "errorText").to_owned(), true),
        "output-denied" => ("the user did not allow it".to_owned(), true),
        _ => ("the call was not finished".to_owned(), true),
    };
    let input = part.get("input").filter(|input| input.is_object()).cloned();
    let input = input.unwrap_or_else(|| json!({}));
    let call = ToolCall { id: id.to_owned(), name: name.to_owned(), input };
    Some((call, ToolResult { id: id.to_owned(), output, is_error }))
}

fn kind(part: &Map<String, Value>) -> &str {
    text_of(part, "type")
}

fn text_of<'a>(part: &'a Map<String, Value>, name: &str) -> &'a str {
    part.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> ChatRequest {
        ChatRequest::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn earlier_answers_become_turns_with_the_results_of_their_calls() {
        let request = read(&json!({ "id": "x", "trigger": "submit-message", "messages": [
            { "id": "1", "role": "user", "parts": [{ "type": "text", "text": "hi" }] },
            { "id": "2", "role": "assistant", "parts": [
                { "type": "step-start" },
                { "type": "reasoning", "text": "hm" },
                { "type": "text", "text": "let me see" },
                { "type": "tool-bash", "toolCallId": "c1", "state": "output-available",
                  "input": { "command": "ls" }, "output": { "stdout": "a" } },
                { "type": "dynamic-tool", "toolName": "odd", "toolCallId": "c2",
                  "state": "output-error", "input": null, "errorText": "no" },
                { "type": "tool-bash", "toolCallId": "c3", "state": "input-streaming" },
                { "type": "data-x", "data": 1 },
                { "type": "step-start" },
                { "type": "text", "text": "there is a" },
            ] },
            { "id": "3", "role": "user", "parts": [{ "type": "text", "text": "and?" }] },
        ]}));
        assert_eq!(request.order().as_deref(), Some("and?"));
        let call = |id: &str, name: &str, input: Value| {
            Block::Call(ToolCall { id: id.to_owned(), name: name.to_owned(), input })
        };
        let result = |id: &str, output: &str, is_error| ToolResult {
            id: id.to_owned(),
            output: output.to_owned(),
            is_error,
        };
        assert_eq!(
            request.conversation("s".to_owned()).turns,
            [
                Turn::User("hi".into()),
                Turn::Assistant(vec![
                    Block::Text("let me see".into()),
                    call("c1", "bash", json!({ "command": "ls" })),
                    call("c2", "odd", json!({})),
                ]),
                Turn::Results(vec![
                    result("c1", r#"{"stdout":"a"}"#, false),
                    result("c2", "no", true)
                ]),
                Turn::Assistant(vec![Block::Text("there is a".into())]),
                Turn::User("and?".into()),
            ]
        );
    }

    #[test]
    fn a_sandbox_is_named_by_the_chat_or_the_temporary_session() {
        let message = json!([{ "role": "user", "parts": [] }]);
        let session = |mut body: Value| {
            body["messages"] = message.clone();
            read(&body).session()
        };
        let key = |body: Value| session(body).unwrap().map(|session| session.key("me"));
        assert_eq!(key(json!({})), None);
        assert_eq!(key(json!({ "id": "" })), None);
        assert_eq!(key(json!({ "id": "a" })).unwrap(), "chat:me:a");
        assert_eq!(key(json!({ "id": "a", "chatId": "b" })).unwrap(), "chat:me:b");
        assert_eq!(key(json!({ "id": "a", "temporarySessionId": "t" })).unwrap(), "tmp:me:t");
        for bad in ["a b", "a/b", "\u{e9}", &"x".repeat(129)] {
            assert_eq!(session(json!({ "chatId": bad })), Err(BadChat::BadSession), "{bad}");
        }
    }

    #[test]
    fn what_is_no_chat_is_refused() {
        for bad in
            ["", "{}", "[]", r#"{"messages":[]}"#, r#"{"messages":[{"role":"robot","parts":[]}]}"#]
        {
            assert!(
                matches!(ChatRequest::read(bad.as_bytes()), Err(BadChat::Malformed(_))),
                "{bad}"
            );
        }
        let many =
            json!({ "messages": vec![json!({ "role": "user", "parts": [] }); MAX_MESSAGES + 1] });
        assert!(matches!(ChatRequest::read(many.to_string().as_bytes()), Err(BadChat::TooLong(_))));
    }
}
