//! What the program says and how it ends when no server is needed to know it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use sandbank_test_support::free_port;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// On a machine of its own, as far as the environment tells: no server, no token, no settings.
fn sandbank(dir: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(SANDBANK);
    command
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir.path())
        .env("SANDBANK_DATA_DIR", dir.path().join("data"))
        .env("SANDBANK_CONFIG", dir.path().join("config.toml"))
        .env("SANDBANK_PORT", free_port().unwrap().to_string())
        .stdin(Stdio::null());
    std::fs::write(dir.path().join("config.toml"), "").unwrap();
    command
}

fn run(words: &[&str]) -> Output {
    sandbank(&tempfile::tempdir().unwrap(), words).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One sentence, one hint, nothing on stdout, the documented code.
#[track_caller]
fn refused(output: &Output, code: i32, sentence: &str, hint: &str) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "two lines were expected: {text}");
    assert!(lines[0].starts_with("error: ") && lines[0].contains(sentence), "{text}");
    assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{text}");
    assert!(output.stdout.is_empty(), "stdout has {:?}", stdout(output));
}

#[test]
fn usage_errors_are_one_sentence_with_a_hint_and_code_64() {
    refused(&run(&[]), 64, "a command is missing", "--help");
    refused(&run(&["runn"]), 64, "'runn'", "did you mean run?");
    refused(&run(&["run"]), 64, "COMMAND", "--help");
    refused(&run(&["ps", "--quite"]), 64, "--quite", "--quiet");
    refused(
        &run(&["run", "--memory", "lots", "--", "true"]),
        64,
        "--memory",
        "sandbank run --help",
    );
    refused(&run(&["run", "--memory", "1m", "--", "true"]), 64, "256m", "--help");
    refused(&run(&["run", "--timeout", "soon", "--", "true"]), 64, "--timeout", "--help");
    refused(&run(&["run", "--memroy", "512m", "--", "ls"]), 64, "--memroy", "--memory");
    refused(&run(&["exec", "x", "--wrkdir", "a", "ls"]), 64, "--wrkdir", "--workdir");
    refused(&run(&["rm"]), 64, "no sandbox is named", "`sandbank rm --all` removes every one");
    refused(&run(&["cp", "a", "b"]), 64, "neither place is in a sandbox", "SANDBOX:PATH");
    refused(&run(&["cp", "x:a", "y:b"]), 64, "both places", "first");
    let apart = run(&["exec", "x", "--shell", "build", "--", "make"]);
    refused(&apart, 64, "\"build\" after --shell", "write --shell=build");
    refused(&run(&["workspace"]), 64, "a command is missing", "sandbank workspace --help");
    refused(&run(&["workspace", "rm", "../x"]), 64, "not a workspace's name", "workspace rm");
    refused(&run(&["run", "--env", "NOT_SET_HERE", "--", "true"]), 64, "NOT_SET_HERE", "VALUE");
    refused(&run(&["shell", "x", "--image", "y"]), 64, "cannot be used with", "--help");
    refused(&run(&["shell"]), 64, "needs a terminal", "sandbank exec");
}

#[test]
fn commands_that_need_a_server_say_so_with_code_69() {
    for words in [
        &["ps"][..],
        &["exec", "x", "--", "true"],
        &["logs", "x"],
        &["inspect", "x"],
        &["rm", "x"],
        &["port", "x"],
        &["cp", "x:a", "b"],
        &["workspace", "ls"],
        &["workspace", "rm", "project"],
    ] {
        let output = run(words);
        refused(&output, 69, "no server runs at http://127.0.0.1:", "sandbank serve");
        for name in ["SANDBANK_DATA_DIR", "SANDBANK_URL", "--url"] {
            refused(&output, 69, "none has the data directory /", name);
        }
    }
    let output = run(&["ps", "--url", "http://127.0.0.1:1"]);
    refused(&output, 69, "no server answers at http://127.0.0.1:1", "SANDBANK_URL");
    refused(&run(&["ps", "--url", "nonsense"]), 64, "not a server address", "http://");
}

#[test]
fn a_failure_is_json_when_json_was_asked_for() {
    for words in [&["ps", "--json"][..], &["--json", "runn"]] {
        let output = run(words);
        let text = stderr(&output);
        let said: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(said["exitCode"].as_i64(), output.status.code().map(i64::from), "{text}");
        assert!(said["error"].is_string() && said["hint"].is_string(), "{text}");
    }
}

#[test]
fn a_broken_setting_stops_every_command_that_needs_it_and_names_its_source() {
    let dir = tempfile::tempdir().unwrap();
    for words in [&["ps"][..], &["config", "check"], &["config", "show"], &["serve", "--check"]] {
        let output = sandbank(&dir, words).env("SANDBANK_PORT", "http").output().unwrap();
        refused(&output, 64, "SANDBANK_PORT", "config example");
    }
    let mut command = sandbank(&dir, &["config", "check"]);
    std::fs::write(dir.path().join("config.toml"), "[server]\nprot = 1\n").unwrap();
    refused(&command.output().unwrap(), 64, "did you mean \"server.port\"?", "config example");
}

#[test]
fn the_configuration_is_shown_with_where_it_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = sandbank(&dir, &["config", "show", "--json"]);
    let output = command.env("SANDBANK_ADMIN_TOKEN", "do-not-print-me").output().unwrap();
    let text = stdout(&output);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
    assert!(row("server.port")["origin"].as_str().unwrap().contains("SANDBANK_PORT"));
    assert_eq!(row("server.host")["value"], "127.0.0.1");
    assert_eq!(row("auth.admin_token")["value"], "[redacted]");
    assert!(!text.contains("do-not-print-me"));

    let path = sandbank(&dir, &["config", "path"]).output().unwrap();
    assert_eq!(stdout(&path).trim(), dir.path().join("config.toml").to_str().unwrap());
}

#[test]
fn the_example_configuration_is_accepted_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let example = sandbank(&dir, &["config", "example"]).output().unwrap();
    let mut check = sandbank(&dir, &["config", "check"]);
    std::fs::write(dir.path().join("config.toml"), &example.stdout).unwrap();
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn help_is_an_answer_with_examples_and_without_colours_in_a_pipe() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Run something:") && stdout(&output).contains("Exit codes"));
    for command in ["run", "serve", "cp", "logs", "doctor"] {
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("Examples:"), "{command} has no examples");
        assert!(!stdout(&output).contains('\u{1b}'), "{command} colours a pipe");
    }
    assert!(stdout(&run(&["--version"])).starts_with("sandbank "));
    assert!(stdout(&run(&["completions", "bash"])).contains("_sandbank"));
}

#[test]
fn a_reader_that_goes_away_is_no_error_worth_words() {
    let mut child = sandbank(&tempfile::tempdir().unwrap(), &["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(matches!(output.status.code(), Some(0 | 141)), "{:?}", output.status);
}

#[test]
fn a_server_that_is_not_there_is_not_healthy() {
    refused(&run(&["health"]), 69, "http://127.0.0.1:", "sandbank serve");
    let dir = tempfile::tempdir().unwrap();
    let everywhere = sandbank(&dir, &["health"]).env("SANDBANK_HOST", "0.0.0.0").output().unwrap();
    refused(&everywhere, 69, "http://127.0.0.1:", "sandbank serve");
}

#[test]
fn the_token_is_only_there_after_a_first_start() {
    refused(&run(&["token"]), 77, "there is no token yet", "sandbank serve");
}

#[test]
fn a_token_is_never_sent_to_a_stranger_on_the_servers_port() {
    let dir = tempfile::tempdir().unwrap();
    let stranger = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = stranger.local_addr().unwrap().port().to_string();
    let listener = std::thread::spawn(move || {
        use std::io::Read;
        let mut seen = String::new();
        let (mut stream, _) = stranger.accept().unwrap();
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let body = r#"{"ok":true}"#;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        seen
    });
    let mut command = sandbank(&dir, &["ps"]);
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(dir.path().join("data/token"), "very-secret\n").unwrap();
    let output = command.env("SANDBANK_PORT", port).output().unwrap();
    refused(&output, 77, "has another data directory than /", "SANDBANK_TOKEN");
    refused(&output, 77, "do not have its token", "SANDBANK_DATA_DIR");
    let seen = listener.join().unwrap().to_lowercase();
    assert!(seen.contains("get /v1/health") && !seen.contains("very-secret"), "{seen}");
}
