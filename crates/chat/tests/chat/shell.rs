//! Tools that run on this machine, in a directory of the test's own.

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use sandbank_tools::{Tool, ToolError, Toolbox, Update, Updates};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) struct Shell {
    directory: tempfile::TempDir,
}

impl Shell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { directory: tempfile::tempdir().unwrap() })
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }
}

#[async_trait]
impl Toolbox for Shell {
    fn tools(&self) -> Vec<Tool> {
        vec![Tool {
            name: "bash",
            title: "Bash",
            description: "Runs a command".to_owned(),
            input: json!({ "type": "object", "properties": { "command": { "type": "string" } },
                "required": ["command"], "additionalProperties": false }),
            read_only: false,
        }]
    }

    async fn call(
        &self,
        _name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Updates, ToolError> {
        let Some(command) = input["command"].as_str() else {
            return Err(ToolError::InvalidInput("command is required".to_owned()));
        };
        let mut child = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.directory.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ToolError::Failed(error.to_string()))?;
        let (out, updates) = mpsc::channel(16);
        tokio::spawn(async move {
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let view = |said: &str, code| json!({ "stdout": said, "stderr": "", "exitCode": code });
            let mut said = String::new();
            loop {
                let line = tokio::select! {
                    line = lines.next_line() => line.unwrap(),
                    () = cancel.cancelled() => return,
                    () = out.closed() => return,
                };
                let Some(line) = line else { break };
                said.push_str(&line);
                said.push('\n');
                let _ = out.send(Update::Progress(view(&said, -1))).await;
            }
            let code = child.wait().await.unwrap().code().unwrap();
            let _ = out.send(Update::Done(view(&said, code))).await;
        });
        Ok(updates)
    }

    async fn call_quietly(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Updates, ToolError> {
        let mut updates = self.call(name, input, cancel).await?;
        let (out, quiet) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Some(update) = updates.recv().await {
                if !matches!(update, Update::Progress(_)) && out.send(update).await.is_err() {
                    return;
                }
            }
        });
        Ok(quiet)
    }
}
