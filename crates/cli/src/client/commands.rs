//! Commands: start, look at, feed, signal, resize.

use std::collections::BTreeMap;

use bytes::Bytes;
use sandbank_protocol::Ending;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Client, ClientError, TOKEN_IS_MISSING, segment};
use crate::failure::{Exit, Failure};
use crate::ui::text;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandRequest {
    /// Chosen by us, so that starting again after a broken connection attaches instead.
    pub(crate) command_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) argv: Vec<String>,
    /// Instead of `argv`: a script for a shell that remembers.
    #[serde(flatten)]
    pub(crate) script: Option<ShellScript>,
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

#[derive(Debug, Serialize)]
pub(crate) struct ShellScript {
    pub(crate) shell: String,
    pub(crate) script: String,
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
    pub(crate) shell: Option<ShellState>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ShellState {
    /// It is another one than before.
    pub(crate) restarted: bool,
}

#[derive(Deserialize)]
struct Listing {
    commands: Vec<Value>,
}

impl Client {
    /// Input needs a token even where a command may be started without one; a program that waits
    /// for what never comes is worse than a refusal.
    pub(crate) fn check_input(&self, request: &CommandRequest) -> Result<(), Failure> {
        if self.token.is_some() || request.stdin != "open" {
            return Ok(());
        }
        let message = "standard input can only be passed on with the server's token";
        Err(Failure::new(Exit::NotPermitted, message)
            .hint(format!("{TOKEN_IS_MISSING}; a command without input runs with </dev/null")))
    }

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

    /// The id behind what a person typed: an id, or the unique beginning of one.
    pub(crate) async fn resolve_command(
        &self,
        sandbox: &str,
        name: &str,
    ) -> Result<String, Failure> {
        let commands = self.commands(sandbox).await.map_err(|error| error.about(sandbox))?;
        let ids = commands.iter().filter_map(|command| command["commandId"].as_str());
        choose(name, ids)
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

/// What begins no id may still be one that is no longer listed: the server has the last word.
fn choose<'a>(name: &str, ids: impl Iterator<Item = &'a str>) -> Result<String, Failure> {
    let beginning: Vec<&str> = ids.filter(|id| id.starts_with(name)).collect();
    match beginning.as_slice() {
        [only] => Ok((*only).to_owned()),
        several if several.is_empty() || several.contains(&name) => Ok(name.to_owned()),
        several => {
            let ids = text::printable(&several.join(", "));
            let shown = text::printable(name);
            Err(Failure::usage(format!("{shown:?} begins more than one command's id: {ids}"))
                .hint("type a few more characters"))
        }
    }
}

pub(super) fn command_path(sandbox: &str, id: &str, rest: &str) -> String {
    format!("/v1/sandboxes/{}/commands/{}{rest}", segment(sandbox), segment(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_the_beginning_of_its_id() {
        let choose = |name| choose(name, ["c-1f2e", "c-1f2e-2", "c-9"].into_iter());
        assert_eq!(choose("c-9").unwrap(), "c-9");
        assert_eq!(choose("c-1f2e-").unwrap(), "c-1f2e-2");
        assert_eq!(choose("c-1f2e").unwrap(), "c-1f2e", "an id wins over a beginning");
        assert_eq!(choose("c-forgotten").unwrap(), "c-forgotten");
        assert_eq!(choose("c-1").unwrap_err().exit, Exit::Usage);
    }
}
