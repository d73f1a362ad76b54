//! Files of the workspace, as a model reads, writes and edits them.

use bytes::Bytes;
use serde_json::{Value, json};

use super::schema::Input;
use crate::limits::{LIST_DEPTH, MAX_CONTENT_CHARS, MAX_FOUND, MAX_LISTED, MAX_READ_BYTES};
use crate::{Sandbox, Search, ToolError};

pub(super) async fn read(sandbox: &dyn Sandbox, input: &Input) -> Result<Value, ToolError> {
    let content = text(sandbox, input.text("path")).await?;
    Ok(json!({ "content": content, "untrusted": true }))
}

pub(super) async fn write(sandbox: &dyn Sandbox, input: &Input) -> Result<Value, ToolError> {
    let content = Bytes::copy_from_slice(input.text("content").as_bytes());
    sandbox.write_file(input.text("path"), content).await?;
    Ok(json!({ "success": true }))
}

pub(super) async fn edit(sandbox: &dyn Sandbox, input: &Input) -> Result<Value, ToolError> {
    let (path, old, new) = (input.text("path"), input.text("old"), input.text("new"));
    let bytes = sandbox.read_file(path, MAX_READ_BYTES).await?;
    let content = std::str::from_utf8(&bytes).map_err(|_| {
        ToolError::InvalidInput(format!("{path} is not UTF-8, and would be damaged by an edit"))
    })?;
    let found = content.matches(old).count();
    match found {
        0 => {
            let message = format!("the text to replace is not in {path}; read the file again");
            return Err(ToolError::InvalidInput(message));
        }
        1 => {}
        many if !input.switch("all") => {
            let message = format!(
                "the text to replace is {many} times in {path}; give more of its surroundings, or \
                 set all to true"
            );
            return Err(ToolError::InvalidInput(message));
        }
        _ => {}
    }
    // Before the text is made: a short call can ask for more than there is memory.
    let rest = content.len() - found * old.len();
    if found.saturating_mul(new.len()).saturating_add(rest) > MAX_CONTENT_CHARS {
        return Err(ToolError::InvalidInput(format!("{path} would become too long")));
    }
    sandbox.write_file(path, content.replace(old, new).into()).await?;
    Ok(json!({ "success": true, "replaced": found }))
}

pub(super) async fn list(sandbox: &dyn Sandbox, input: &Input) -> Result<Value, ToolError> {
    let path = Some(input.text("path")).filter(|path| !path.is_empty()).unwrap_or(".");
    let depth = input.integer("depth").unwrap_or(LIST_DEPTH);
    let listing = sandbox.list(path, depth, MAX_LISTED).await?;
    Ok(json!({
        "entries": listing.entries, "truncated": listing.truncated, "untrusted": true,
    }))
}

pub(super) async fn search(sandbox: &dyn Sandbox, input: &Input) -> Result<Value, ToolError> {
    let search = Search {
        pattern: input.text("pattern").to_owned(),
        path: input.text("path").to_owned(),
        glob: Some(input.text("glob").to_owned()).filter(|glob| !glob.is_empty()),
        limit: MAX_FOUND,
    };
    let found = sandbox.search(&search).await?;
    Ok(json!({ "matches": found.matches, "truncated": found.truncated, "untrusted": true }))
}

/// A binary file is refused: as text it says nothing and costs much.
async fn text(sandbox: &dyn Sandbox, path: &str) -> Result<String, ToolError> {
    let bytes = sandbox.read_file(path, MAX_READ_BYTES).await?;
    if bytes.contains(&0) {
        return Err(ToolError::InvalidInput(format!(
            "{path} is a binary file of {} bytes; look at it with bash, as with file or xxd",
            bytes.len()
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
