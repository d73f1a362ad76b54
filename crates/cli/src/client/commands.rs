//! Commands: start, look at, feed, signal, resize.

use std::collections::BTreeMap;

use bytes::Bytes;
use sandbank_protocol::Ending;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Client, ClientError, segment};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandRequest {
    /// Chosen by us, so that starting again after a broken connection attaches instead.
    pub(crate) command_id: String,
    pub(crate) argv: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    pub(crate) stdin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pty: Option<PtySize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct PtySize {
    pub(crate) rows: u16,
    pub(crate) cols: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CommandStatus {
    pub(crate) command_id: String,
    pub(crate) argv: Vec<String>,
    pub(crate) state: String,
    pub(crate) ending: Option<Ending>,
    pub(crate) started_at_ms: u64,
    pub(crate) stdin_offset: u64,
}

#[derive(Deserialize)]
struct Listing {
    commands: Vec<Value>,
}

impl Client {
    pub(crate) async fn start_command(
        &self,
        sandbox: &str,
        request: &CommandRequest,
    ) -> Result<(), ClientError> {
        let path = format!("/v1/sandboxes/{}/commands", segment(sandbox));
        self.send(self.post(&path).json(request)).await.map(drop)
    }

    /// Oldest first, as the server describes them.
    pub(crate) async fn commands(&self, sandbox: &str) -> Result<Vec<Value>, ClientError> {
        let path = format!("/v1/sandboxes/{}/commands", segment(sandbox));
        Ok(self.json::<Listing>(self.get(&path)).await?.commands)
    }

    pub(crate) async fn command(
        &self,
        sandbox: &str,
        id: &str,
    ) -> Result<CommandStatus, ClientError> {
        self.json(self.get(&command_path(sandbox, id, ""))).await
    }

    /// Bytes below the server's offset are skipped there, so sending a piece twice is safe.
    pub(crate) async fn send_stdin(
        &self,
        sandbox: &str,
        id: &str,
        offset: u64,
        eof: bool,
        piece: Bytes,
    ) -> Result<(), ClientError> {
        let path = command_path(sandbox, id, &format!("/stdin?offset={offset}&eof={eof}"));
        // No time limit: a program that does not read makes us wait, as a pipe would.
        let request = self.request(reqwest::Method::POST, &path).body(piece);
        self.send(request).await.map(drop)
    }

    pub(crate) async fn signal(
        &self,
        sandbox: &str,
        id: &str,
        signal: i32,
        tree: bool,
    ) -> Result<(), ClientError> {
        let request = self.post(&command_path(sandbox, id, "/signal"));
        let body = json!({ "signal": signal, "tree": tree });
        self.send(request.json(&body)).await.map(drop)
    }

    pub(crate) async fn resize(
        &self,
        sandbox: &str,
        id: &str,
        size: PtySize,
    ) -> Result<(), ClientError> {
        let request = self.post(&command_path(sandbox, id, "/resize"));
        self.send(request.json(&size)).await.map(drop)
    }
}

pub(super) fn command_path(sandbox: &str, id: &str, rest: &str) -> String {
    format!("/v1/sandboxes/{}/commands/{}{rest}", segment(sandbox), segment(id))
}
