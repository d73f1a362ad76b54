//! The shell that remembers, through HTTP in a real sandbox: state between scripts, and a daemon
//! that is killed in the middle of one.

use std::process::{Output, Stdio};

use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

async fn say(api: &Api, id: &str, script: &str) -> anyhow::Result<(Value, String)> {
    let path = format!("/v1/sandboxes/{id}/commands?wait=true");
    let body = json!({ "shell": "main", "script": script, "timeoutMs": 60_000 });
    let reply = api.call("POST", &path, Some(body)).await?;
    let logs = api.logs(id, reply["commandId"].as_str().unwrap_or_default()).await?;
    let text = logs.iter().filter(|record| record.stream == "stdout").map(|record| &*record.data);
    Ok((reply, text.collect()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_leaves_is_there_for_the_next_and_outlives_the_daemon() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("remembers").await?;
    let (first, _) = say(&api, &id, "mkdir -p d; cd d; x=5; export Y=6; f() { echo f$1; }").await?;
    assert_eq!((&first["exitCode"], &first["shell"]["restarted"]), (&json!(0), &json!(false)));
    assert!(first["shell"]["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("/d")), "{first}");

    let script = "for i in $(seq 300); do echo $i; sleep 0.01; done; x=$((x + 1)); false";
    let body = json!({ "shell": "main", "script": script });
    let command = api.start(&id, body).await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let logs = api.logs(&id, &command).await?;
    let text: String = logs
        .iter()
        .filter(|record| record.stream == "stdout")
        .map(|record| &*record.data)
        .collect();
    let expected: String = (1..=300).map(|n| format!("{n}\n")).collect();
    assert_eq!(text, expected, "it went on, and nothing is lost");
    assert_eq!(api.wait(&id, &command).await?, 1);

    let (_, text) = say(&api, &id, "echo $? $x $Y; f 7; id -u; touch here && ls").await?;
    assert_eq!(text, "1 6 6\nf7\n1000\nhere\n");
    let (dead, _) = say(&api, &id, "exit 3").await?;
    assert_eq!(dead["exitCode"], 3);
    let (next, text) = say(&api, &id, "echo $Y [$x]; pwd").await?;
    assert_eq!(next["shell"]["restarted"], true);
    assert!(text.starts_with("6 []\n") && text.ends_with("/d\n"), "{text}");
    daemon.finish().await
}

fn exec(daemon: &TestDaemon, words: &[&str]) -> anyhow::Result<Output> {
    let mut command = daemon.cli();
    Ok(command.arg("exec").args(words).stdin(Stdio::null()).output()?)
}

fn code_and_output(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_runs_scripts_in_the_shell_that_remembers() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("typed").await?;
    let say = |words: &[&str]| exec(&daemon, &[&[id.as_str(), "--shell", "--"], words].concat());
    let first = say(&["mkdir -p app; cd app; x=5; export KEPT=6; echo begun; (exit 7)"])?;
    assert_eq!(code_and_output(&first), (Some(7), "begun\n".to_owned()));
    // Words are joined, as ssh does.
    let second = say(&["echo", "$?", "$x", "${PWD##*/}", ">&2;", "exit", "3"])?;
    assert_eq!(code_and_output(&second), (Some(3), String::new()));
    assert_eq!(String::from_utf8_lossy(&second.stderr), "7 5 app\n");

    let third = say(&["echo [$x] $KEPT ${PWD##*/}"])?;
    assert_eq!(code_and_output(&third), (Some(0), "[] 6 app\n".to_owned()));
    let told = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(told.contains("the shell before had ended"), "{told}");
    let other = exec(&daemon, &[&id, "--shell=other", "--", "echo [$KEPT]"])?;
    assert_eq!(code_and_output(&other), (Some(0), "[]\n".to_owned()));
    assert!(other.stderr.is_empty(), "{}", String::from_utf8_lossy(&other.stderr));

    let refused = exec(&daemon, &[&id, "--shell", "--env", "A=1", "--", "echo"])?;
    assert_eq!(refused.status.code(), Some(64), "a shell has an environment of its own");
    let late = exec(&daemon, &[&id, "--shell", "--timeout", "1s", "--", "sleep 100"])?;
    assert_eq!(late.status.code(), Some(124));
    assert_eq!(code_and_output(&say(&["echo on"])?), (Some(0), "on\n".to_owned()));
    daemon.finish().await
}
