//! The requests a run makes, by name.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::http::{Client, Payload, Reply};
use crate::limits;

/// What a private daemon keeps ready, all without network. Only creates that leave image and
/// limits to the daemon get it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    pub(crate) image: &'static str,
    pub(crate) size: usize,
}

impl Pool {
    /// As the daemon's configuration has it.
    pub(crate) fn setting(self) -> String {
        format!("{}@none={}", self.image, self.size)
    }

    /// As the daemon's metrics have it.
    fn is_full_line(self) -> String {
        let Self { image, size } = self;
        format!("sandbank_pool_ready{{image=\"{image}\",network=\"none\"}} {size}")
    }
}

/// Other than the default, so that the machine is made when it is asked for.
const OWN_PIDS: u32 = 511;

pub(crate) struct Api {
    client: Client,
    pool: Pool,
    /// Numbers session keys, so that no create finds an old sandbox.
    next_key: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    None,
    Default,
}

impl Api {
    pub(crate) fn new(client: Client, pool: Pool) -> Self {
        Self { client, pool, next_key: AtomicU64::new(0) }
    }

    pub(crate) async fn create(&self, network: Network) -> anyhow::Result<String> {
        let mode = match network {
            Network::None => "none",
            Network::Default => "default",
        };
        self.create_with(mode, json!({ "pids": OWN_PIDS }), "cold").await
    }

    /// Without network; the pool must have a machine.
    pub(crate) async fn create_from_pool(&self) -> anyhow::Result<String> {
        self.create_with("none", json!({}), "pool").await
    }

    async fn create_with(
        &self,
        network: &str,
        resources: Value,
        source: &str,
    ) -> anyhow::Result<String> {
        let number = self.next_key.fetch_add(1, Ordering::Relaxed);
        let body = json!({
            "sessionKey": format!("bench:{number}"),
            "network": { "mode": network },
            "resources": resources,
            "idleTtlMs": limits::IDLE_TTL_MS,
        });
        let answer = self.client.call(Method::POST, "/v1/sandboxes", Some(body)).await?;
        let told = &answer["acquireSource"];
        anyhow::ensure!(told == source, "a machine came from {told}, not from {source}");
        Ok(answer["sandboxId"].as_str().context("a create without sandboxId")?.to_owned())
    }

    pub(crate) async fn pool_is_full(&self) -> anyhow::Result<bool> {
        let mut reply = self.client.open(Method::GET, "/metrics", Payload::empty()).await?;
        let mut text = Vec::new();
        while let Some(chunk) = reply.chunk().await? {
            text.extend_from_slice(&chunk);
        }
        let full = self.pool.is_full_line();
        Ok(String::from_utf8_lossy(&text).lines().any(|line| line == full))
    }

    /// Makes a sandbox and has its runner answer something.
    pub(crate) async fn create_ready(&self, network: Network) -> anyhow::Result<String> {
        let id = self.create(network).await?;
        self.ask_runner(&id).await?;
        Ok(id)
    }

    /// The cheapest question that only the runner can answer.
    pub(crate) async fn ask_runner(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/commands");
        self.client.call(Method::GET, &path, None).await.map(drop)
    }

    /// A question to the runner whose answer does not grow with what has run before.
    pub(crate) async fn stat_workspace(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/files:stat?path=.");
        self.client.call(Method::GET, &path, None).await.map(drop)
    }

    pub(crate) async fn destroy(&self, id: &str) -> anyhow::Result<()> {
        self.client.call(Method::DELETE, &format!("/v1/sandboxes/{id}"), None).await.map(drop)
    }

    pub(crate) async fn sandboxes(&self) -> anyhow::Result<Vec<String>> {
        let answer = self.client.call(Method::GET, "/v1/sandboxes", None).await?;
        let list = answer["sandboxes"].as_array().context("a list without sandboxes")?;
        let id = |each: &Value| Some(each["id"].as_str()?.to_owned());
        list.iter().map(|each| id(each).context("a sandbox without id")).collect()
    }

    /// Memory that the sandbox's cgroup accounts for.
    pub(crate) async fn memory_bytes(&self, id: &str) -> anyhow::Result<u64> {
        let path = format!("/v1/sandboxes/{id}/stats");
        let answer = self.client.call(Method::GET, &path, None).await?;
        find_number(&answer, "memoryBytes").context("stats without memoryBytes")
    }

    pub(crate) async fn start(&self, id: &str, argv: &[&str]) -> anyhow::Result<String> {
        let path = format!("/v1/sandboxes/{id}/commands");
        let answer = self.client.call(Method::POST, &path, Some(json!({ "argv": argv }))).await?;
        Ok(answer["commandId"].as_str().context("a start without commandId")?.to_owned())
    }

    /// Runs a command to its ending in one request; anything but exit code 0 is an error. This is
    /// what "command" means in every part.
    pub(crate) async fn run(&self, id: &str, argv: &[&str]) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/commands?wait=true");
        let answer = self.client.call(Method::POST, &path, Some(json!({ "argv": argv }))).await?;
        anyhow::ensure!(answer["exitCode"] == 0, "{argv:?} ended with {answer}");
        Ok(())
    }

    /// A script in a shell that remembers, to its ending.
    pub(crate) async fn evaluate(&self, id: &str, script: &str) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/commands?wait=true");
        let body = json!({ "shell": "bench", "script": script });
        let answer = self.client.call(Method::POST, &path, Some(body)).await?;
        anyhow::ensure!(answer["exitCode"] == 0, "{script:?} ended with {answer}");
        Ok(())
    }

    /// Without network, from the pool.
    pub(crate) async fn create_session(&self) -> anyhow::Result<String> {
        let body = json!({ "image": "base", "ttl_seconds": limits::IDLE_TTL_MS / 1000 });
        let answer = self.client.call(Method::POST, "/v1/sessions", Some(body)).await?;
        let told = &answer["acquire_source"];
        anyhow::ensure!(told == "pool", "a session came from {told}, not from the pool");
        Ok(answer["id"].as_str().context("a session without id")?.to_owned())
    }

    pub(crate) async fn exec_in_session(&self, id: &str, cmd: &str) -> anyhow::Result<()> {
        let path = format!("/v1/sessions/{id}/exec");
        let answer = self.client.call(Method::POST, &path, Some(json!({ "cmd": cmd }))).await?;
        anyhow::ensure!(answer["exit_code"] == 0, "{cmd:?} ended with {answer}");
        Ok(())
    }

    pub(crate) async fn destroy_session(&self, id: &str) -> anyhow::Result<()> {
        self.client.call(Method::DELETE, &format!("/v1/sessions/{id}"), None).await.map(drop)
    }

    pub(crate) async fn logs(
        &self,
        id: &str,
        command: &str,
        encoding: &str,
    ) -> anyhow::Result<Reply> {
        let path = format!(
            "/v1/sandboxes/{id}/commands/{command}/logs?after=0&follow=true&encoding={encoding}"
        );
        self.client.open(Method::GET, &path, Payload::empty()).await
    }

    pub(crate) async fn upload(
        &self,
        id: &str,
        path: &str,
        piece: Bytes,
        total: u64,
    ) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/files?path={path}");
        let payload = Payload::repeated(piece, total);
        let mut reply = self.client.open(Method::PUT, &path, payload).await?;
        while reply.chunk().await?.is_some() {}
        Ok(())
    }

    /// Reads a whole file and says how long it was.
    pub(crate) async fn download(&self, id: &str, path: &str) -> anyhow::Result<u64> {
        let path = format!("/v1/sandboxes/{id}/files?path={path}");
        let mut reply = self.client.open(Method::GET, &path, Payload::empty()).await?;
        let mut total = 0;
        while let Some(chunk) = reply.chunk().await? {
            total += chunk.len() as u64;
        }
        Ok(total)
    }

    pub(crate) async fn delete_file(&self, id: &str, path: &str) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/files?path={path}");
        self.client.call(Method::DELETE, &path, None).await.map(drop)
    }

    /// Reads all of a tree and gives the last line, which says how it ended.
    pub(crate) async fn tree(&self, id: &str, path: &str, stat: bool) -> anyhow::Result<Value> {
        let limits = "nodes=1000000&timeMs=30000";
        let path = format!("/v1/sandboxes/{id}/files:tree?path={path}&stat={stat}&{limits}");
        let reply = self.client.open(Method::GET, &path, Payload::empty()).await?;
        end_of(reply).await
    }

    /// Reads everything that is found and gives the last line.
    pub(crate) async fn search(
        &self,
        id: &str,
        path: &str,
        pattern: &str,
    ) -> anyhow::Result<Value> {
        let limits = (1_000_000, 300_000);
        let body =
            json!({ "pattern": pattern, "path": path, "limit": limits.0, "timeMs": limits.1 });
        let path = format!("/v1/sandboxes/{id}/search:text");
        let reply = self.client.open(Method::POST, &path, Payload::json(&body)).await?;
        end_of(reply).await
    }

    /// Any answer of JSON that needs nothing but a path.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.client.call(Method::GET, path, None).await
    }

    /// The tool `bash` of the session that there is when nobody names one.
    pub(crate) async fn call_bash(&self, command: &str) -> anyhow::Result<Value> {
        let input = json!({ "command": command });
        self.client.call(Method::POST, "/api/tools/bash", Some(input)).await
    }

    /// A command on a terminal of its own.
    pub(crate) async fn start_terminal(&self, id: &str, argv: &[&str]) -> anyhow::Result<String> {
        let path = format!("/v1/sandboxes/{id}/commands");
        let body = json!({ "argv": argv, "pty": { "rows": 24, "cols": 80 } });
        let answer = self.client.call(Method::POST, &path, Some(body)).await?;
        Ok(answer["commandId"].as_str().context("a start without commandId")?.to_owned())
    }

    /// What a person types after `offset` bytes.
    pub(crate) async fn type_in(
        &self,
        id: &str,
        command: &str,
        offset: u64,
        keys: &'static [u8],
    ) -> anyhow::Result<()> {
        let path = format!("/v1/sandboxes/{id}/commands/{command}/stdin?offset={offset}");
        self.client.send_bytes(Method::POST, &path, Bytes::from_static(keys)).await
    }

    pub(crate) async fn pause(&self, id: &str) -> anyhow::Result<()> {
        self.client.call(Method::POST, &format!("/v1/sandboxes/{id}:pause"), None).await.map(drop)
    }

    pub(crate) async fn resume(&self, id: &str) -> anyhow::Result<()> {
        self.client.call(Method::POST, &format!("/v1/sandboxes/{id}:resume"), None).await.map(drop)
    }

    pub(crate) async fn is_healthy(&self) -> bool {
        self.client.call(Method::GET, "/v1/health", None).await.is_ok()
    }
}

/// What the last of many lines has as its `end`.
async fn end_of(mut reply: Reply) -> anyhow::Result<Value> {
    let mut tail: Vec<u8> = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        let skipped = chunk.len().saturating_sub(limits::LAST_LINE_BYTES);
        tail.extend_from_slice(&chunk[skipped..]);
        // Seldom, because it moves what is kept.
        if tail.len() > 2 * limits::LAST_LINE_BYTES {
            tail.drain(..tail.len() - limits::LAST_LINE_BYTES);
        }
    }
    let last = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut last: Value = serde_json::from_slice(last).context("the last line is not JSON")?;
    let end = last.get_mut("end").map(Value::take);
    end.with_context(|| format!("the answer broke off at {last}"))
}

/// The first number of that name, at any depth.
fn find_number(value: &Value, name: &str) -> Option<u64> {
    match value {
        Value::Object(fields) => match fields.get(name).and_then(Value::as_u64) {
            Some(number) => Some(number),
            None => fields.values().find_map(|inner| find_number(inner, name)),
        },
        Value::Array(items) => items.iter().find_map(|inner| find_number(inner, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_asked_for_and_found_full_in_the_daemons_own_words() {
        let pool = Pool { image: "host", size: 4 };
        assert_eq!(pool.setting(), "host@none=4");
        let line = "sandbank_pool_ready{image=\"host\",network=\"none\"} 4";
        assert_eq!(pool.is_full_line(), line);
    }
}
