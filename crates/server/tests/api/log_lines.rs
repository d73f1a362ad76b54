//! The daemon's own log: what happened is in it, secrets are not, and nothing forges a line.

use std::io::Write;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::world::World;

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Everything at the finest level, in JSON. The test's runtime has one thread, so this sees all.
pub(crate) fn capture() -> (Log, tracing::subscriber::DefaultGuard) {
    // What is logged at all is decided for the whole process, by whoever listens anywhere: one that
    // listens for ever keeps tests that come and go from switching lines off for each other.
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let all = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        let _ = tracing::subscriber::set_global_default(all.with_writer(std::io::sink).finish());
    });
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    (log, tracing::subscriber::set_default(subscriber))
}

#[tokio::test]
async fn commands_are_logged_with_exit_code_and_duration_but_without_secrets() {
    let (log, _guard) = capture();
    let world = World::start().await;
    let secrets = ["canary-env", "canary-command-env", "canary-script", "canary-file"];
    let body = json!({ "sessionKey": "log", "env": { "KEY": secrets[0] } });
    let id = world.api.create_with(body).await.unwrap();
    let body = json!({ "argv": ["/bin/bash", "-c", format!("exit 3 # {}", secrets[2])],
        "env": { "TOKEN": secrets[1] } });
    let command = world.api.start(&id, body).await.unwrap();
    assert_eq!(world.api.wait(&id, &command).await.unwrap(), 3);
    let body = json!({ "argv": ["sh", "-c", format!("exit 4 # {}", secrets[2])] });
    let path = format!("/v1/sandboxes/{id}/commands?wait=true");
    assert!(world.open("POST", &path).json(&body).send().await.unwrap().status().is_success());
    world.api.write(&id, "/workspace/f", secrets[3].as_bytes()).await.unwrap();
    wait_for("the end of the command in the log", Duration::from_secs(10), || async {
        log.text().contains("command ended")
    })
    .await
    .unwrap();
    let text = log.text();
    for secret in secrets.into_iter().chain([world.token.as_str()]) {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let fields = |message: &str| {
        let line = lines.iter().find(|line| line["fields"]["message"] == message);
        line.unwrap_or_else(|| panic!("no line {message:?}"))["fields"].clone()
    };
    assert_eq!(fields("sandbox ready")["cpu_millis"], 2000);
    let started = fields("command started");
    assert_eq!((&started["program"], &started["words"]), (&json!("bash"), &json!(3)));
    let ended = fields("command ended");
    assert_eq!((&ended["exit_code"], &ended["command"]), (&json!(3), &json!(command)));
    assert!(ended["duration_ms"].is_u64(), "{ended}");
    let ran = fields("command ran");
    assert_eq!((&ran["exit_code"], &ran["program"]), (&json!(4), &json!("sh")));
    assert!(ran["duration_ms"].is_u64(), "{ran}");
}

#[tokio::test]
async fn a_command_whose_client_left_is_logged_like_any_other() {
    let (log, _guard) = capture();
    let world = World::start().await;
    let id = world.api.create("leaver").await.unwrap();
    let body = json!({ "argv": ["sh", "-c", "touch begun; sleep 0.2"], "commandId": "left" });
    let path = format!("/v1/sandboxes/{id}/commands?wait=true");
    let begun = || async { matches!(world.api.read(&id, "/workspace/begun").await, Ok(Some(_))) };
    tokio::select! {
        _ = world.open("POST", &path).json(&body).send() => panic!("it ended too early"),
        seen = wait_for("the command to begin", Duration::from_secs(10), begun) => seen.unwrap(),
    }
    wait_for("a line about the command", Duration::from_secs(10), || async {
        let about = |line: &str| line.contains("\"left\"") && line.contains("\"exit_code\":0");
        log.text().lines().any(about)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn nothing_a_client_sends_makes_a_second_line() {
    let (log, _guard) = capture();
    let world = World::start().await;
    for path in ["/v1/sandboxes/%0aforged%1b[31m:stop", "/%0d%0aforged"] {
        world.open("POST", path).send().await.unwrap();
    }
    let header = world.open("GET", "/v1/health").header("x-request-id", "forged id").send();
    header.await.unwrap();
    for line in log.text().lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}
