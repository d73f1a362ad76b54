//! What a client says, as what is to be done.

use serde_json::{Map, Value, json};

/// One message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// A line for the program.
    Line(Value),
    /// Back to the client who sent it.
    Reply(Value),
    /// A line for the program, and a message for everybody who is attached.
    LineAndNotice(Value, Vec<Value>),
    Interrupt,
    Restart,
    Nothing,
}

pub(super) fn read(text: &str) -> Action {
    let Ok(Value::Object(message)) = serde_json::from_str(text) else {
        return Action::Line(user_line(vec![text_block(text)]));
    };
    match message.get("type").and_then(Value::as_str) {
        Some("user") => Action::Line(user(&message)),
        Some("command") => {
            let command = message.get("command").and_then(Value::as_str).unwrap_or_default();
            Action::Line(user_line(vec![text_block(command)]))
        }
        Some("control") => control(message),
        Some("control_response") => control_response(message),
        Some("approval_response") => approval(&message),
        Some("interrupt") => Action::Interrupt,
        Some("restart") => Action::Restart,
        Some("ping") => Action::Reply(json!({ "type": "pong" })),
        _ => Action::Nothing,
    }
}

pub(super) fn user_text(text: &str) -> String {
    let Ok(Value::Object(message)) = serde_json::from_str(text) else { return text.to_owned() };
    match message.get("message") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn user(message: &Map<String, Value>) -> Value {
    let mut content = Vec::new();
    let files = message.get("context_files").and_then(Value::as_array);
    let files: Vec<String> = files
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|file| format!("@{file}"))
        .collect();
    if !files.is_empty() {
        content.push(text_block(&files.join(" ")));
    }
    match message.get("message") {
        Some(Value::String(text)) => content.push(text_block(text)),
        Some(Value::Array(blocks)) => content.extend(blocks.iter().cloned()),
        Some(Value::Object(inner)) => match inner.get("content") {
            Some(Value::Array(blocks)) => content.extend(blocks.iter().cloned()),
            Some(Value::String(text)) => content.push(text_block(text)),
            _ => {}
        },
        _ => {}
    }
    for image in message.get("images").and_then(Value::as_array).into_iter().flatten() {
        let (Some(data), kind) = (image.get("data"), image.get("mimeType")) else { continue };
        let kind = kind.and_then(Value::as_str).unwrap_or("image/png");
        let source = json!({ "type": "base64", "media_type": kind, "data": data });
        content.push(json!({ "type": "image", "source": source }));
    }
    user_line(content)
}

fn user_line(content: Vec<Value>) -> Value {
    json!({ "type": "user", "session_id": "", "message": { "role": "user", "content": content } })
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn control(message: Map<String, Value>) -> Action {
    let subtype = message.get("subtype").and_then(Value::as_str);
    let nested = || message.get("request")?.get("subtype")?.as_str();
    if subtype.or_else(nested) == Some("initialize") {
        return Action::Reply(json!({ "type": "system", "subtype": "echo", "payload": message }));
    }
    Action::Line(Value::Object(message))
}

fn control_response(message: Map<String, Value>) -> Action {
    if message.get("response").is_some_and(Value::is_object) || message.contains_key("answers") {
        return Action::Line(Value::Object(message));
    }
    let id = message.get("request_id").cloned().unwrap_or(Value::Null);
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    let said = text("decision").or_else(|| text("behavior"));
    let allowed = message.get("allow").and_then(Value::as_bool);
    // Whatever is not clearly a yes is a no.
    let is_allowed = match said {
        Some(word) => matches!(word, "allow" | "approve" | "accept"),
        None => allowed == Some(true),
    };
    if !is_allowed {
        let why = text("message").unwrap_or("The user denied this.");
        return Action::Line(answer(&id, json!({ "behavior": "deny", "message": why })));
    }
    let mut response = json!({ "behavior": "allow", "updatedInput": tool_input(&message) });
    let suggestions = message.get("permission_suggestions").filter(|list| list.is_array());
    let notices = suggestions.map(of_this_session).unwrap_or_default();
    if let Some(suggestions) = suggestions {
        response["permission_suggestions"] = suggestions.clone();
    }
    match notices.is_empty() {
        true => Action::Line(answer(&id, response)),
        false => Action::LineAndNotice(answer(&id, response), notices),
    }
}

/// As the user left it; the program replaces the tool's own with it.
fn tool_input(message: &Map<String, Value>) -> Value {
    let input = ["updatedInput", "updated_input", "tool_input"]
        .iter()
        .find_map(|name| message.get(*name).filter(|value| !value.is_null()));
    input.cloned().unwrap_or_else(|| json!({}))
}

/// Suggestions for this session hold from now on; everybody is told.
fn of_this_session(suggestions: &Value) -> Vec<Value> {
    let list = suggestions.as_array().into_iter().flatten();
    let modes = list.filter(|one| one.get("destination") == Some(&json!("session")));
    modes
        .filter_map(|one| one.get("mode"))
        .map(|mode| json!({ "type": "control", "subtype": "set_permission_mode", "mode": mode }))
        .collect()
}

fn approval(message: &Map<String, Value>) -> Action {
    let id = message.get("request_id").cloned().unwrap_or(Value::Null);
    let approved = message.get("approved").and_then(Value::as_bool).unwrap_or_else(|| {
        matches!(message.get("decision").and_then(Value::as_str), Some("approve" | "allow"))
    });
    let response = match approved {
        true => json!({ "behavior": "allow", "updatedInput": tool_input(message) }),
        false => json!({ "behavior": "deny", "message": "The user denied this." }),
    };
    Action::Line(answer(&id, response))
}

fn answer(id: &Value, response: Value) -> Value {
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": id, "response": response },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: Value) -> Value {
        match read(&message.to_string()) {
            Action::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    fn content(message: Value) -> Value {
        line(message)["message"]["content"].clone()
    }

    #[test]
    fn what_a_user_says_reaches_the_program_in_blocks() {
        let hi = json!({ "type": "text", "text": "hi" });
        assert_eq!(content(json!({ "type": "user", "message": "hi" })), json!([hi]));
        assert_eq!(content(json!({ "type": "user", "message": { "content": "hi" } })), json!([hi]));
        assert_eq!(content(json!({ "type": "user", "message": [hi] })), json!([hi]));
        assert_eq!(content(json!({ "type": "command", "command": "hi" })), json!([hi]));
        let with_files =
            json!({ "type": "user", "message": "hi", "context_files": ["a.txt", "b"] });
        let files = json!({ "type": "text", "text": "@a.txt @b" });
        assert_eq!(content(with_files), json!([files, hi]));
        let image = json!({ "type": "user", "message": "hi", "images": [{ "data": "QQ==", "mimeType": "image/gif" }] });
        assert_eq!(content(image)[1]["source"]["media_type"], "image/gif");
        assert_eq!(read("plain words"), Action::Line(user_line(vec![text_block("plain words")])));
    }

    #[test]
    fn permissions_are_answered_in_the_programs_words() {
        let allow = json!({ "type": "control_response", "request_id": "r", "decision": "allow", "tool_input": { "a": 1 } });
        let expected = json!({ "type": "control_response", "response": { "subtype": "success", "request_id": "r",
            "response": { "behavior": "allow", "updatedInput": { "a": 1 } } } });
        assert_eq!(line(allow), expected);
        for word in ["deny", "reject", "block"] {
            let deny = json!({ "type": "control_response", "request_id": "r", "decision": word, "message": "no" });
            let inner = &line(deny)["response"]["response"];
            assert_eq!(inner, &json!({ "behavior": "deny", "message": "no" }));
        }
        for odd in [
            json!({}),
            json!({ "decision": "cancel" }),
            json!({ "allow": "false" }),
            json!({ "allow": null }),
        ] {
            let mut unclear = json!({ "type": "control_response", "request_id": "r" });
            unclear.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
            assert_eq!(line(unclear)["response"]["response"]["behavior"], "deny", "{odd}");
        }
        let verbatim = json!({ "type": "control_response", "response": { "x": 1 } });
        assert_eq!(line(verbatim.clone()), verbatim);
        let legacy = json!({ "type": "approval_response", "request_id": "r", "approved": false });
        assert_eq!(line(legacy)["response"]["response"]["behavior"], "deny");
        let session = json!({ "type": "control_response", "request_id": "r", "allow": true,
            "permission_suggestions": [{ "destination": "session", "mode": "acceptEdits" }] });
        let Action::LineAndNotice(_, notices) = read(&session.to_string()) else { panic!() };
        assert_eq!(notices[0]["mode"], "acceptEdits");
    }

    #[test]
    fn controls_are_echoed_or_passed_on() {
        let hello = json!({ "type": "control", "subtype": "initialize", "capabilities": {} });
        let echo = json!({ "type": "system", "subtype": "echo", "payload": hello });
        assert_eq!(read(&hello.to_string()), Action::Reply(echo));
        let model = json!({ "type": "control", "subtype": "set_model", "model": "opus" });
        assert_eq!(line(model.clone()), model);
        assert_eq!(read(r#"{"type":"interrupt"}"#), Action::Interrupt);
        assert_eq!(read(r#"{"type":"restart"}"#), Action::Restart);
        assert_eq!(read(r#"{"type":"ping"}"#), Action::Reply(json!({ "type": "pong" })));
        assert_eq!(read(r#"{"type":"odd"}"#), Action::Nothing);
    }
}
