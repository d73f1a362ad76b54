//! `sandbank mcp` as a host sees it: lines in, lines out, and an end with its input.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{LIMIT, SANDBANK};

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("only messages")).collect()
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn initialize() -> String {
    let client = json!({ "name": "host", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    request(0, "initialize", &params)
}

fn bash(id: u64, command: &str) -> String {
    request(id, "tools/call", &json!({ "name": "bash", "arguments": { "command": command } }))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_piped_in_are_answered_and_the_end_of_input_ends_it() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let mut host = daemon
        .cli()
        .args(["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let script = [
        initialize(),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        String::new(),
        "this is no JSON".to_owned(),
        request(1, "no/such/method", &json!({})),
        bash(2, "echo from the pipe"),
    ];
    let mut input = host.stdin.take().unwrap();
    input.write_all(format!("{}\n", script.join("\n")).as_bytes())?;
    drop(input);
    let output = tokio::task::spawn_blocking(move || host.wait_with_output()).await??;
    let (said, errors) = (lines(&output), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(said[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(said[1]["error"]["code"], -32700);
    assert_eq!((&said[2]["id"], &said[2]["error"]["code"]), (&json!(1), &json!(-32601)));
    assert_eq!(said[3]["result"]["content"][0]["text"], "from the pipe\n");
    assert_eq!(said.len(), 4, "{said:?}");
    // Its sandbox went with it.
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_neither_the_session_nor_its_files() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let mut host: tokio::process::Command = daemon.cli().into();
    host.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut host = host.spawn()?;
    let mut input = host.stdin.take().unwrap();
    let mut output = BufReader::new(host.stdout.take().unwrap()).lines();
    let mut ask = async |line: String| -> anyhow::Result<Value> {
        input.write_all(format!("{line}\n").as_bytes()).await?;
        let line = tokio::time::timeout(LIMIT, output.next_line()).await??;
        Ok(serde_json::from_str(&line.expect("it lives"))?)
    };
    ask(initialize()).await?;
    ask(bash(1, "echo kept > file")).await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let said = ask(bash(2, "cat file")).await?;
    assert_eq!(said["result"]["content"][0]["text"], "kept\n", "{said}");
    drop(input);
    assert!(tokio::time::timeout(LIMIT, host.wait()).await??.success());
    daemon.finish().await
}

#[test]
fn without_a_server_it_says_so_on_standard_error_only() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(SANDBANK)
        .arg("mcp")
        .env_clear()
        .env("SANDBANK_DATA_DIR", directory.path())
        .env("SANDBANK_CONFIG", "/dev/null")
        .env("SANDBOXD_PORT", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{errors}");
    assert!(output.stdout.is_empty());
    assert!(errors.contains("sandbank serve"), "{errors}");
}
