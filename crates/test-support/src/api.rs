//! A plain HTTP client of the sandboxd dialect and our own routes, as a test would write it.

use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    url: String,
    token: String,
}

/// One line of a log stream.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct LogRecord {
    pub stream: String,
    #[serde(default)]
    pub data: String,
    #[serde(default)]
    pub seq: u64,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

impl Api {
    pub fn new(url: String, token: String) -> Self {
        let http = reqwest::Client::builder().pool_max_idle_per_host(4).build();
        Self { http: http.expect("a client without TLS always builds"), url, token }
    }

    /// Joins a command's terminal; `query` is what follows `attach`.
    pub async fn attach(&self, command: &str, query: &str) -> anyhow::Result<crate::Viewer> {
        crate::Viewer::open(&self.url, &self.token, &format!("{command}/attach{query}")).await
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("tests name real methods");
        self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token)
    }

    /// The JSON answer of a call that must succeed.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let (status, answer) = self.try_call(method, path, body).await?;
        anyhow::ensure!((200..300).contains(&status), "{method} {path} gave {status}: {answer}");
        Ok(answer)
    }

    /// Status and JSON, whatever they are.
    pub async fn try_call(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<(u16, Value)> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        let answer = if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? };
        Ok((status, answer))
    }

    pub async fn create(&self, key: &str) -> anyhow::Result<String> {
        self.create_with(json!({ "sessionKey": key, "network": { "mode": "none" } })).await
    }

    pub async fn create_with(&self, body: Value) -> anyhow::Result<String> {
        let answer = self.call("POST", "/v1/sandboxes", Some(body)).await?;
        Ok(answer["sandboxId"].as_str().context("no sandboxId")?.to_owned())
    }

    /// Starts `bash -lc script`, as RemcoChat does.
    pub async fn bash(&self, sandbox: &str, script: &str) -> anyhow::Result<String> {
        self.bash_within(sandbox, script, Duration::from_secs(60)).await
    }

    pub async fn bash_within(
        &self,
        sandbox: &str,
        script: &str,
        timeout: Duration,
    ) -> anyhow::Result<String> {
        let body = json!({
            "cmd": "bash", "args": ["-lc", script], "timeoutMs": timeout.as_millis() as u64,
            "detached": true,
        });
        self.start(sandbox, body).await
    }

    pub async fn start(&self, sandbox: &str, body: Value) -> anyhow::Result<String> {
        let path = format!("/v1/sandboxes/{sandbox}/commands");
        let answer = self.call("POST", &path, Some(body)).await?;
        Ok(answer["commandId"].as_str().context("no commandId")?.to_owned())
    }

    pub async fn wait(&self, sandbox: &str, command: &str) -> anyhow::Result<i64> {
        let path = format!("/v1/sandboxes/{sandbox}/commands/{command}/wait");
        self.call("GET", &path, None).await?["exitCode"].as_i64().context("no exitCode")
    }

    pub async fn status(&self, sandbox: &str, command: &str) -> anyhow::Result<Value> {
        self.call("GET", &format!("/v1/sandboxes/{sandbox}/commands/{command}"), None).await
    }

    pub async fn logs(&self, sandbox: &str, command: &str) -> anyhow::Result<Vec<LogRecord>> {
        let path = format!("/v1/sandboxes/{sandbox}/commands/{command}/logs");
        let text = self.request("GET", &path).send().await?.error_for_status()?.text().await?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Exit code, stdout and stderr of a script.
    pub async fn run(&self, sandbox: &str, script: &str) -> anyhow::Result<(i64, String, String)> {
        let command = self.bash(sandbox, script).await?;
        let records = self.logs(sandbox, &command).await?;
        let of = |name: &str| -> String {
            records.iter().filter(|r| r.stream == name).map(|r| r.data.as_str()).collect()
        };
        Ok((self.wait(sandbox, &command).await?, of("stdout"), of("stderr")))
    }

    pub async fn write(&self, sandbox: &str, path: &str, content: &[u8]) -> anyhow::Result<()> {
        let file = json!({ "path": path, "contentBase64": BASE64.encode(content) });
        let body = json!({ "files": [file] });
        self.call("POST", &format!("/v1/sandboxes/{sandbox}/files:write"), Some(body)).await?;
        Ok(())
    }

    pub async fn read(&self, sandbox: &str, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let route = format!("/v1/sandboxes/{sandbox}/files:read?path={path}");
        let answer = self.call("GET", &route, None).await?;
        if answer["found"] == json!(false) {
            return Ok(None);
        }
        Ok(Some(BASE64.decode(answer["contentBase64"].as_str().context("no contentBase64")?)?))
    }

    pub async fn stop(&self, sandbox: &str) -> anyhow::Result<()> {
        self.call("POST", &format!("/v1/sandboxes/{sandbox}:stop"), None).await.map(drop)
    }

    pub async fn sandboxes(&self) -> anyhow::Result<Vec<Value>> {
        let answer = self.call("GET", "/v1/sandboxes", None).await?;
        answer["sandboxes"].as_array().cloned().context("no sandboxes")
    }

    pub async fn delete_all(&self) -> anyhow::Result<()> {
        for sandbox in self.sandboxes().await? {
            self.stop(sandbox["id"].as_str().context("no id")?).await?;
        }
        Ok(())
    }
}
