//! Where a case runs: an API, a sandbox, and the memory of those who serve it.

use std::time::Duration;

use anyhow::Context;
use sandbank_test_support::Api;
use serde_json::{Value, json};

use crate::heard::Heard;

/// What is waited for takes milliseconds; a loaded machine gets the rest.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) api: Api,
    pub(crate) sandbox: String,
    /// The daemon's pid.
    pub(crate) daemon: u32,
}

/// A command without a time limit of its own.
pub(crate) fn shell(script: &str) -> Value {
    json!({ "argv": ["bash", "-c", script] })
}

impl Place {
    /// Another sandbox of the same daemon.
    pub(crate) async fn another(&self, body: Value) -> anyhow::Result<Self> {
        let sandbox = self.api.create_with(body).await?;
        Ok(Self { sandbox, ..self.clone() })
    }

    pub(crate) fn route(&self, command: &str) -> String {
        format!("/v1/sandboxes/{}/commands/{command}", self.sandbox)
    }

    pub(crate) async fn start(&self, body: Value) -> anyhow::Result<String> {
        self.api.start(&self.sandbox, body).await
    }

    pub(crate) async fn status(&self, command: &str) -> anyhow::Result<Value> {
        self.api.status(&self.sandbox, command).await
    }

    pub(crate) async fn wait(&self, command: &str) -> anyhow::Result<Value> {
        self.api.call("GET", &format!("{}/wait", self.route(command)), None).await
    }

    pub(crate) async fn signal(&self, command: &str, signal: &str) -> anyhow::Result<()> {
        let body = json!({ "signal": signal, "tree": true });
        let route = format!("{}/signal", self.route(command));
        self.api.call("POST", &route, Some(body)).await.map(drop)
    }

    /// An open log stream.
    pub(crate) async fn stream(
        &self,
        command: &str,
        query: &str,
    ) -> anyhow::Result<reqwest::Response> {
        let route = format!("{}/logs?{query}", self.route(command));
        Ok(self.api.request("GET", &route).send().await?.error_for_status()?)
    }

    /// The exact bytes of everything, live or later.
    pub(crate) async fn hear(&self, command: &str) -> anyhow::Result<Heard> {
        Heard::default().all(self.stream(command, "encoding=base64").await?).await
    }

    pub(crate) async fn run(&self, body: Value) -> anyhow::Result<Heard> {
        let command = self.start(body).await?;
        self.hear(&command).await
    }

    pub(crate) async fn script(&self, script: &str) -> anyhow::Result<Heard> {
        self.run(shell(script)).await
    }

    /// What a script prints, which must succeed.
    pub(crate) async fn inside(&self, script: &str) -> anyhow::Result<String> {
        let heard = self.script(script).await?;
        anyhow::ensure!(heard.exit_code == Some(0), "{script}: {heard:?}");
        Ok(heard.text().trim().to_owned())
    }

    /// How many processes have this very argument.
    pub(crate) async fn processes_with(&self, argument: &str) -> anyhow::Result<u64> {
        let script = format!("grep -lzs -e '^{argument}$' /proc/[0-9]*/cmdline | wc -l");
        Ok(self.inside(&script).await?.parse()?)
    }

    pub(crate) async fn zombies(&self) -> anyhow::Result<u64> {
        let script = "grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l";
        Ok(self.inside(script).await?.parse()?)
    }

    /// `VmRSS` or `VmHWM` of the daemon.
    pub(crate) fn daemon_kib(&self, field: &str) -> anyhow::Result<u64> {
        kib(&std::fs::read_to_string(format!("/proc/{}/status", self.daemon))?, field)
    }

    /// `memoryBytes` or `memoryPeakBytes` of the sandbox: of its runner, when nothing else runs.
    pub(crate) async fn sandbox_kib(&self, field: &str) -> anyhow::Result<u64> {
        let route = format!("/v1/sandboxes/{}/stats", self.sandbox);
        let stats = self.api.call("GET", &route, None).await?;
        Ok(stats[field].as_u64().with_context(|| stats.to_string())? >> 10)
    }

    /// A file of the workspace.
    pub(crate) async fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = format!("/vercel/sandbox/workspace/{name}");
        self.api.write(&self.sandbox, &path, content).await
    }
}

fn kib(status: &str, field: &str) -> anyhow::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("no {field} in {status}"))?.parse()?)
}
