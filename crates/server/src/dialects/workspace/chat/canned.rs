//! Frames without an agent, for tests of a UI: a client that connects with `test_events=1` gets
//! them for texts that hold certain words.

use serde_json::{Value, json};

pub(super) fn frames(text: &str) -> Option<Vec<Value>> {
    if text.contains("__emit_permission__") {
        let input = json!({ "command": "echo hello" });
        let request = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": input });
        return Some(vec![json!({
            "type": "control_request", "request_id": "test-permission", "request": request,
        })]);
    }
    if text.contains("__emit_question__") {
        let options = json!([{ "label": "Yes" }, { "label": "No" }]);
        let questions = json!([{ "question": "Go on?", "header": "Test", "options": options, "multiSelect": false }]);
        let input = json!({ "questions": questions });
        let request =
            json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input });
        return Some(vec![json!({
            "type": "control_request", "request_id": "test-question", "request": request,
        })]);
    }
    if text.contains("__emit_tool__") {
        let block = json!({
            "type": "tool_use", "id": "test-tool", "name": "Bash", "input": { "command": "ls" },
        });
        let result =
            json!({ "type": "tool_result", "tool_use_id": "test-tool", "content": "a.txt" });
        return Some(vec![
            json!({ "type": "assistant", "message": { "role": "assistant", "content": [block] } }),
            json!({ "type": "user", "message": { "role": "user", "content": [result] } }),
            json!({ "type": "result", "subtype": "success", "is_error": false }),
        ]);
    }
    None
}
