//! A word for a model whose files are gone: nothing else would say so.

use serde_json::Value;

use crate::ToolError;

const NOTICE: &str = "The sandbox that this session had has ended, because nobody used it for long \
                      or another session needed its place. This is a new one: files and programs \
                      of earlier calls are gone.";

/// The same with the notice, and whether it has it.
pub(super) fn with_notice(result: Result<Value, ToolError>) -> (Result<Value, ToolError>, bool) {
    let noted = |why: String| format!("{why}. {NOTICE}");
    match result {
        Ok(Value::Object(mut output)) => {
            output.insert("notice".to_owned(), NOTICE.into());
            (Ok(Value::Object(output)), true)
        }
        Err(ToolError::NotFound(why)) => (Err(ToolError::NotFound(noted(why))), true),
        Err(ToolError::InvalidInput(why)) => (Err(ToolError::InvalidInput(noted(why))), true),
        Err(ToolError::Failed(why)) => (Err(ToolError::Failed(noted(why))), true),
        other => (other, false),
    }
}
