//! `tools/call`: one call of a tool, with what it tells on its way.

use std::time::Instant;

use sandbank_tools::{ToolError, Update};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::content;
use super::rpc::{CANCELLED, INVALID_PARAMS, RpcError, answer, notification};
use super::sessions::Call;
use crate::app::App;
use crate::limits::MCP_PROGRESS_PAUSE;

/// What a client asked for.
pub(super) struct Asked {
    pub(super) id: Value,
    name: String,
    input: Value,
    /// Given where the client wants to be told of progress.
    progress: Option<Value>,
}

impl Asked {
    pub(super) fn read(id: Value, mut params: Map<String, Value>) -> Result<Self, RpcError> {
        let invalid = |why: &str| RpcError::new(INVALID_PARAMS, why);
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(invalid("name, a text, is the tool to call"));
        };
        let input = match params.remove("arguments") {
            None => json!({}),
            Some(input @ Value::Object(_)) => input,
            Some(_) => return Err(invalid("arguments is an object")),
        };
        let progress = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        if progress.as_ref().is_some_and(|token| !token.is_string() && !token.is_number()) {
            return Err(invalid("a progressToken is a text or a number"));
        }
        Ok(Self { id, name, input, progress })
    }
}

/// Sends what the client is to know; the answer is the last, and of a call that was cancelled there
/// is none.
pub(super) async fn run(app: App, call: Call, asked: Asked, out: mpsc::Sender<Value>) {
    let Asked { id, name, input, progress } = asked;
    let work = async {
        let mut updates = call.toolbox().call(&name, input, call.cancel.clone()).await?;
        let mut steps = Progress { token: progress, count: 0, last: None };
        while let Some(update) = updates.recv().await {
            match update {
                // Who does not read has no right to slow the command down.
                Update::Progress(output) => {
                    let _ = steps.told(content::glimpse(&output)).map(|step| out.try_send(step));
                }
                Update::Preparing(line) => {
                    let _ = steps.told(Some(line)).map(|step| out.try_send(step));
                }
                Update::Asked(question) => {
                    let line = content::question(&question);
                    let _ = steps.urgent(Some(line)).map(|step| out.try_send(step));
                }
                Update::Allowed => {}
                Update::Done(output) => return Ok(output),
                Update::Failed(error) => return Err(error),
            }
        }
        Err(ToolError::Failed("the tool ended without a result".to_owned()))
    };
    let done = tokio::select! {
        done = work => done,
        () = out.closed() => return,
        () = call.cancel.cancelled() => Err(ToolError::Cancelled),
        () = app.shutdown().draining() => {
            Err(ToolError::Unavailable("the server is stopping".to_owned()))
        }
    };
    let result = match done {
        Ok(output) => Ok(content::result(output)),
        Err(ToolError::UnknownTool(name)) => {
            let shown: String = name.chars().take(64).collect();
            Err(RpcError::new(INVALID_PARAMS, format!("there is no tool called {shown:?}")))
        }
        Err(ToolError::Cancelled) => return,
        Err(error) => Ok(content::failure(&error)),
    };
    let _ = out.send(answer(&id, result)).await;
}

/// The answer to who waits for one and was cancelled by somebody else.
pub(super) fn cancelled(id: &Value) -> Value {
    answer(id, Err(RpcError::new(CANCELLED, "the call was cancelled")))
}

struct Progress {
    token: Option<Value>,
    count: u64,
    last: Option<Instant>,
}

impl Progress {
    /// None where nobody wants it, or something was told just now.
    fn told(&mut self, message: Option<String>) -> Option<Value> {
        if self.last.is_some_and(|last| last.elapsed() < MCP_PROGRESS_PAUSE) {
            return None;
        }
        self.urgent(message)
    }

    /// None where nobody wants it.
    fn urgent(&mut self, message: Option<String>) -> Option<Value> {
        let token = self.token.as_ref()?;
        self.last = Some(Instant::now());
        self.count += 1;
        let mut params = json!({ "progressToken": token, "progress": self.count });
        if let Some(line) = message {
            params["message"] = line.into();
        }
        Some(notification("notifications/progress", &params))
    }
}
