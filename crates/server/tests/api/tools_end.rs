//! Calls of tools that run or wait when the server ends.

use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::model_chat::sleeping;
use crate::tools::{ON, Tools};

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_end_of_the_server_kills_a_command_and_tells_who_waits_for_it() {
    for (number, stream) in ["", "?stream=ndjson"].into_iter().enumerate() {
        let tools = Tools::with("enabled = true", &[ON]).await;
        // A number of seconds that nobody else sleeps.
        let seconds = format!("6{number}{}.5", std::process::id());
        let input = json!({ "command": format!("echo begun; sleep {seconds}") });
        let call = tools.post(&format!("bash{stream}"), &input);
        let answer = tokio::spawn(async move { call.send().await.unwrap().text().await.unwrap() });
        wait_for("the command to sleep", LIMIT, || async { sleeping(&seconds) > 0 }).await.unwrap();
        tools.world.shutdown.drain();
        let answer = tokio::time::timeout(LIMIT, answer).await.expect("it is answered").unwrap();
        let last: Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
        let output = last.get("output").unwrap_or(&last);
        assert_eq!(
            (&output["exitCode"], &output["stderr"]),
            (&json!(130), &json!("Command aborted.")),
            "{answer}"
        );
        assert_eq!(output["stdout"].as_str().unwrap().trim_end(), "begun", "{answer}");
        wait_for("the command to be gone", LIMIT, || async { sleeping(&seconds) == 0 })
            .await
            .unwrap();
        let served = tokio::time::timeout(LIMIT, tools.world.server).await;
        served.expect("nothing holds the server up").unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_when_the_server_ends_is_told_so_and_not_made() {
    let rules = "enabled = true\n[[app.bash_tools.approvals.rules]]\naction = \"ask\"\n\
                 tool = \"writeFile\"";
    for stream in ["", "?stream=ndjson"] {
        let tools = Tools::with(rules, &[ON]).await;
        let input = json!({ "path": "f", "content": "x" });
        let call = tools.post(&format!("writeFile{stream}"), &input);
        let answer = tokio::spawn(async move {
            let response = call.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        });
        let waits = || async {
            let list = tools.world.api.call("GET", "/api/tools/approvals", None).await.unwrap();
            list["waiting"] == 1
        };
        wait_for("a person is asked", LIMIT, waits).await.unwrap();
        tools.world.shutdown.drain();
        let answer = tokio::time::timeout(LIMIT, answer).await.expect("it is answered").unwrap();
        let last: Value = serde_json::from_str(answer.1.lines().last().unwrap()).unwrap();
        let wanted = if stream.is_empty() { (503, "shutting_down") } else { (200, "cancelled") };
        assert_eq!((answer.0, last["code"].as_str().unwrap()), wanted, "{}", answer.1);
    }
}
