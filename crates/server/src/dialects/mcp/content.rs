//! What a tool gave, as text for a model. The same as data stands beside it.

use sandbank_tools::ToolError;
use serde_json::{Value, json};

/// The result of `tools/call`.
pub(super) fn result(output: Value) -> Value {
    let block = |text: &str| json!({ "type": "text", "text": text });
    // What the server has to say does not stand among the words of a program.
    let notice = output.get("notice").and_then(Value::as_str).map(block);
    let content: Vec<Value> = notice.into_iter().chain([block(&text(&output))]).collect();
    let mut result = json!({ "content": content, "isError": false });
    if output.is_object() {
        result["structuredContent"] = output;
    }
    result
}

/// A failure that the model is to see: it may do better.
pub(super) fn failure(error: &ToolError) -> Value {
    json!({ "content": [{ "type": "text", "text": error.to_string() }], "isError": true })
}

/// Output as a terminal shows it; a file as it is; everything else as JSON.
fn text(output: &Value) -> String {
    if output.get("exitCode").is_some() {
        return command(output);
    }
    let field = |name: &str| output.get(name).and_then(Value::as_str);
    match field("content").or_else(|| field("url")) {
        Some(text) => text.to_owned(),
        None => output.to_string(),
    }
}

fn command(output: &Value) -> String {
    let field = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default();
    let count = |name: &str| output.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut text = String::new();
    for (stream, dropped) in
        [("stdout", "stdoutTruncatedChars"), ("stderr", "stderrTruncatedChars")]
    {
        let (said, dropped) = (field(stream), count(dropped));
        if said.is_empty() && dropped == 0 {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if stream == "stderr" {
            text.push_str("[stderr]\n");
        }
        if dropped > 0 {
            text.push_str(&format!("[{dropped} characters before this are left out]\n"));
        }
        text.push_str(said);
    }
    if output["exitCode"] != 0 {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[exit code {}]", output["exitCode"]));
    }
    text
}

/// What a call waits for, for the person behind the client.
pub(super) fn question(question: &Value) -> String {
    let field = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, rule) = (field("approval_id"), field("rule"));
    format!("waiting for a person to allow this call, at /api/tools/approvals/{id} ({rule})")
}

/// The last line of what a command has printed so far, for who waits.
pub(super) fn glimpse(output: &Value) -> Option<String> {
    const MAX_CHARS: usize = 200;
    let last = |name: &str| {
        let said = output.get(name)?.as_str()?;
        said.lines().rev().find(|line| !line.trim().is_empty())
    };
    let line = last("stdout").or_else(|| last("stderr"))?;
    let printable = |char: char| if char.is_control() { ' ' } else { char };
    Some(line.chars().take(MAX_CHARS).map(printable).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_shown_as_a_terminal_shows_it() {
        let shown = |output: Value| text(&output);
        let quiet = json!({ "stdout": "a\n", "stderr": "", "exitCode": 0 });
        assert_eq!(shown(quiet), "a\n");
        let loud =
            json!({ "stdout": "a", "stderr": "b", "exitCode": 2, "stdoutTruncatedChars": 7 });
        assert_eq!(
            shown(loud),
            "[7 characters before this are left out]\na\n[stderr]\nb\n[exit code 2]"
        );
        assert_eq!(
            shown(json!({ "stdout": "", "stderr": "", "exitCode": 124 })),
            "[exit code 124]"
        );
        assert_eq!(shown(json!({ "content": "x\ny" })), "x\ny");
        assert_eq!(shown(json!({ "url": "http://h:1" })), "http://h:1");
        assert_eq!(shown(json!({ "success": true })), r#"{"success":true}"#);
        let result = result(json!({ "success": true }));
        assert_eq!(result["structuredContent"], json!({ "success": true }));
    }

    #[test]
    fn a_notice_is_a_text_of_its_own_before_what_programs_said() {
        let result = result(json!({ "stdout": "a\n", "exitCode": 0, "notice": "It is new." }));
        let block = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(result["content"], json!([block("It is new."), block("a\n")]));
    }

    #[test]
    fn a_glimpse_is_one_printable_line() {
        let output = json!({ "stdout": "a\n\u{1b}[31mred\n\n", "stderr": "" });
        assert_eq!(glimpse(&output).unwrap(), " [31mred");
        assert_eq!(glimpse(&json!({ "stdout": "", "stderr": "" })), None);
    }
}
