//! Nothing a client or a sandbox says makes a line of the daemon's log (T79).

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use crate::SANDBANK;
use crate::wire::exchange;

const FORGED: &str = "forged\r\n{\"level\":\"ERROR\",\"message\":\"forged\"}\n\u{1b}[31m\u{2028}";

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_the_log_is_one_json_object_whatever_clients_send() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_LOG_FORMAT", "json"), ("SANDBANK_LOG", "trace")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let id = api.create("log").await?;
    let marked = json!({ "argv": [format!("/nowhere/{FORGED}"), FORGED], "env": { "A": FORGED } });
    let command = api.start(&id, marked).await?;
    api.wait(&id, &command).await?;
    for body in [
        json!({ "sessionKey": FORGED }),
        json!({ "sessionKey": "log", "image": FORGED }),
        json!({ "sessionKey": "log", "runtime": FORGED }),
    ] {
        api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    }
    let base = format!("/v1/sandboxes/{id}");
    for (route, body) in [
        (
            "files:write",
            json!({ "files": [{ "path": format!("/workspace/{FORGED}"), "contentBase64": "" }] }),
        ),
        ("files:move", json!({ "from": FORGED, "to": FORGED })),
        ("commands", json!({ "argv": ["true"], "commandId": FORGED, "cwd": FORGED })),
        ("commands", json!({ "argv": ["true"], "cwd": FORGED })),
    ] {
        api.try_call("POST", &format!("{base}/{route}"), Some(body)).await?;
    }
    api.try_call("POST", "/v1/tokens", Some(json!({ "name": FORGED, "scope": "admin" }))).await?;
    let import = json!({ "name": "x", "path": format!("/nowhere/{FORGED}") });
    api.try_call("POST", "/v1/images:import", Some(import)).await?;
    let encoded = "%0a%7b%22forged%22%3a1%7d%1b%5b31m";
    for request in [
        format!("GET /v1/sandboxes/{encoded}:stop HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /{encoded} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\tb{\"forged\":1}\r\n\r\n"
            .to_owned(),
        "GET /v1/health HTTP/1.1\r\nHost: evil{\"forged\"}\r\n\r\n".to_owned(),
        "F\u{1b}[31mORGED / HTTP/1.1\r\n\r\n".to_owned(),
    ] {
        exchange(&daemon, request.as_bytes()).await;
    }
    api.stop(&id).await?;
    let log = std::fs::read_to_string(daemon.log_path())?;
    let mut told = 0;
    for line in log.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(value.is_object(), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert_ne!(value["message"], "forged", "{line}");
        told += usize::from(value["message"] == "command started");
    }
    assert!(told >= 1, "the log tells what happened");
    daemon.finish().await
}
