//! One client: does one thing after the other, and asks again whenever the connection breaks or
//! the daemon says that it is busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use sandbank_test_support::{Api, LogRecord, Seeded};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::model::{Model, Promised};

/// A client that gets no answer for this long gives up, and fails the test.
const PATIENCE: Duration = Duration::from_secs(60);
/// An answer that does not come for this long is asked for again: what was asked of a daemon that
/// was killed meanwhile may wait for a connection that nobody makes.
const ANSWER: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(30);
/// Keys of one client: few, so that they are deleted and made again.
const KEYS: u64 = 3;

pub(super) struct Client {
    number: u64,
    api: Api,
    random: Seeded,
    serial: u64,
    known: Model,
}

impl Client {
    pub(super) fn new(number: u64, api: Api, random: Seeded) -> Self {
        Self { number, api, random, serial: 0, known: Model::default() }
    }

    pub(super) async fn work(mut self, over: Arc<AtomicBool>) -> anyhow::Result<Model> {
        while !over.load(Ordering::SeqCst) {
            let key = format!("client {} key {}", self.number, self.random.below(KEYS));
            let id = self.create(&key).await?;
            match self.random.below(8) {
                0..=2 => self.run(&id).await,
                3..=4 => self.write(&id).await,
                5 => self.publish(&id).await,
                6 => self.delete(&id).await,
                _ => Ok(()),
            }
            .with_context(|| format!("client {} with {id}", self.number))?;
        }
        Ok(self.known)
    }

    /// A sandbox that lives keeps its key; one that does not is made anew, once.
    async fn create(&mut self, key: &str) -> anyhow::Result<String> {
        let body = json!({ "sessionKey": key, "network": { "mode": "none" }, "ports": [4000] });
        let answer = self.insist("POST", "/v1/sandboxes", Some(body)).await?;
        let id = answer["sandboxId"].as_str().context("no sandboxId")?.to_owned();
        ensure!(!self.known.deleted.contains(&id), "{id} was deleted, and is back");
        let mine = self.known.living.iter().find(|(_, promised)| promised.key == key);
        match mine.map(|(known, _)| known.clone()) {
            Some(known) => ensure!(known == id, "{key} was {known}, and is {id}"),
            None => {
                let promised = Promised { key: key.to_owned(), ..Promised::default() };
                self.known.living.insert(id.clone(), promised);
            }
        }
        Ok(id)
    }

    async fn run(&mut self, id: &str) -> anyhow::Result<()> {
        let (lines, code) = (20 + self.random.below(60), self.random.below(100) as i64);
        let command = self.name();
        let script =
            format!("for i in $(seq {lines}); do echo line $i; sleep 0.01; done; exit {code}");
        let argv = ["bash", "-c", script.as_str()];
        let body = json!({ "argv": argv, "detached": true, "commandId": command });
        self.insist("POST", &format!("/v1/sandboxes/{id}/commands"), Some(body)).await?;
        let expected: String = (1..=lines).map(|i| format!("line {i}\n")).collect();
        let heard = self.listen(id, &command).await?;
        ensure!(
            heard == expected,
            "{command}: {lines} lines were printed, and heard were:\n{heard}"
        );
        let route = format!("/v1/sandboxes/{id}/commands/{command}/wait");
        let ended = self.insist("GET", &route, None).await?;
        ensure!(ended["exitCode"] == code, "{command} exits with {code}, and not {ended}");
        self.promised(id)?.endings.insert(command, code);
        self.known.commands += 1;
        Ok(())
    }

    /// All of a command's output, resumed where it was cut.
    async fn listen(&mut self, id: &str, command: &str) -> anyhow::Result<String> {
        let (start, mut after, mut text) = (Instant::now(), 0, String::new());
        while start.elapsed() < PATIENCE {
            let route = format!("/v1/sandboxes/{id}/commands/{command}/logs?after={after}");
            let Ok(Ok(mut stream)) = timeout(ANSWER, self.api.request("GET", &route).send()).await
            else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            if !stream.status().is_success() {
                retryable(stream.status().as_u16(), &stream.text().await.unwrap_or_default())?;
                tokio::time::sleep(RETRY).await;
                continue;
            }
            let mut partial = Vec::new();
            loop {
                let chunk = match timeout(ANSWER, stream.chunk()).await {
                    Ok(Ok(Some(chunk))) => chunk,
                    // A stream that ends by itself has said everything.
                    Ok(Ok(None)) => return Ok(text),
                    Ok(Err(_)) | Err(_) => break,
                };
                partial.extend_from_slice(&chunk);
                while let Some(end) = partial.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = partial.drain(..=end).collect();
                    let record: LogRecord = serde_json::from_slice(&line)?;
                    if record.stream == "stdout" {
                        ensure!(record.seq > after, "frame {} came again", record.seq);
                        after = record.seq;
                        text.push_str(&record.data);
                    }
                }
            }
        }
        bail!("the output of {command} did not end; heard so far:\n{text}")
    }

    async fn write(&mut self, id: &str) -> anyhow::Result<()> {
        let path = format!(
            "/vercel/sandbox/workspace/dir-{}/file-{}",
            self.random.below(3),
            self.random.below(5)
        );
        let content = format!("{} by client {}", self.serial, self.number).repeat(50);
        self.serial += 1;
        let base64 = base64::engine::general_purpose::STANDARD.encode(&content);
        let body = json!({ "files": [{ "path": path, "contentBase64": base64 }] });
        self.insist("POST", &format!("/v1/sandboxes/{id}/files:write"), Some(body)).await?;
        self.promised(id)?.files.insert(path, content);
        Ok(())
    }

    async fn publish(&mut self, id: &str) -> anyhow::Result<()> {
        let answer = self.insist("GET", &format!("/v1/sandboxes/{id}/ports/4000"), None).await?;
        let port = answer["hostPort"].as_u64().context("no hostPort")?;
        let before = self.promised(id)?.host_port.replace(port);
        ensure!(
            before.is_none_or(|before| before == port),
            "the port moved from {before:?} to {port}"
        );
        Ok(())
    }

    async fn delete(&mut self, id: &str) -> anyhow::Result<()> {
        self.insist("POST", &format!("/v1/sandboxes/{id}:stop"), None).await?;
        self.known.living.remove(id);
        self.known.deleted.insert(id.to_owned());
        Ok(())
    }

    /// Asks until there is an answer. Every call that is made here may be repeated.
    async fn insist(
        &self,
        method: &str,
        route: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let start = Instant::now();
        let mut last = String::new();
        while start.elapsed() < PATIENCE {
            match timeout(ANSWER, self.api.try_call(method, route, body.clone())).await {
                Ok(Ok((status, answer))) if status < 300 => return Ok(answer),
                Ok(Ok((status, answer))) => {
                    last = format!("{status} {answer}");
                    retryable(status, &last).with_context(|| format!("{method} {route}"))?;
                }
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = format!("nothing in {ANSWER:?}"),
            }
            tokio::time::sleep(RETRY).await;
        }
        bail!("no answer to {method} {route} in {PATIENCE:?}; last: {last}")
    }

    fn promised(&mut self, id: &str) -> anyhow::Result<&mut Promised> {
        self.known.living.get_mut(id).context("a sandbox of this client")
    }

    fn name(&mut self) -> String {
        self.serial += 1;
        format!("c{}-{}", self.number, self.serial)
    }
}

/// Busy is an answer that may be asked again; anything else is a loss.
fn retryable(status: u16, answer: &str) -> anyhow::Result<()> {
    ensure!(matches!(status, 429 | 503), "{answer}");
    Ok(())
}
