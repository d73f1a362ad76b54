//! Commands through the API.

use serde_json::{Value, json};

use crate::world::{World, code, refused};

#[tokio::test]
async fn bash_runs_with_exit_code_and_both_streams() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let (exit, out, err) = world.api.run(&id, "echo out; echo err >&2; exit 7").await.unwrap();
    assert_eq!((exit, out.as_str(), err.as_str()), (7, "out\n", "err\n"));
}

#[tokio::test]
async fn waiting_is_repeatable_and_carries_the_ending() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "exit 3").await;
    for _ in 0..2 {
        let path = format!("{command}/wait");
        let answer: Value = world.open("GET", &path).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer, json!({ "exitCode": 3, "ending": { "kind": "exited", "code": 3 } }));
    }
}

#[tokio::test]
async fn one_request_runs_a_command_to_its_ending() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/commands?wait=true");
    // The second takes longer than the runner stays with a start.
    for (name, script) in [("short", "exit 3"), ("long", "sleep 0.6; exit 3")] {
        let body = json!({ "argv": ["sh", "-c", script], "commandId": name });
        for attached in [false, true] {
            let answer = world.api.call("POST", &path, Some(body.clone())).await.unwrap();
            let ending = json!({ "kind": "exited", "code": 3 });
            let expected = json!({
                "commandId": name, "attached": attached, "exitCode": 3, "ending": ending,
                "stdout": "", "stderr": "",
            });
            assert_eq!(answer, expected);
        }
    }
    let odd = world.open("POST", &path.replace("true", "maybe")).json(&json!({ "argv": ["ls"] }));
    assert_eq!(refused(odd).await, code(400, "bad_query"));
}

#[tokio::test]
async fn a_start_that_waits_brings_the_end_of_the_output_and_counts_the_rest() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/commands?wait=true");
    // The second takes longer than the runner stays with a start.
    for pause in ["0", "0.6"] {
        let script = format!("echo out; echo err >&2; sleep {pause}; printf 'h\\303\\251\\377'");
        let body = json!({ "argv": ["bash", "-c", script] });
        let answer = world.api.call("POST", &path, Some(body)).await.unwrap();
        assert_eq!(answer["stdout"], "out\nhé\u{fffd}", "{answer}");
        assert_eq!(answer["stderr"], "err\n");
        assert!(answer.get("stdoutTruncatedBytes").is_none(), "{answer}");
    }
    let flood =
        json!({ "argv": ["bash", "-c", "head -c 9000000 /dev/zero | tr '\\0' x; echo end"] });
    let answer = world.api.call("POST", &path, Some(flood)).await.unwrap();
    let kept = answer["stdout"].as_str().unwrap();
    assert!(kept.ends_with("xend\n") && kept.len() == 64 << 10, "{} bytes", kept.len());
    assert_eq!(answer["stdoutTruncatedBytes"], 9_000_004 - (64 << 10));
    let shell = json!({ "shell": "main", "script": "echo in the shell" });
    let answer = world.api.call("POST", &path, Some(shell)).await.unwrap();
    assert_eq!(answer["stdout"], "in the shell\n");
    let started = json!({ "argv": ["true"] });
    let answer =
        world.api.call("POST", &path.replace("?wait=true", ""), Some(started)).await.unwrap();
    assert!(answer.get("stdout").is_none(), "it has not ended: {answer}");
}

#[tokio::test]
async fn fields_of_a_command_that_there_are_not_are_told_of() {
    let world = World::start().await;
    let path = format!("/v1/sandboxes/{}/commands", world.sandbox().await);
    let sandboxds =
        json!({ "cmd": "bash", "args": ["-lc", "true"], "timeoutMs": 5000, "detached": true });
    let answer = world.api.call("POST", &path, Some(sandboxds)).await.unwrap();
    assert!(answer.get("warnings").is_none(), "{answer}");
    let slip = json!({ "argv": ["true"], "timeout": 5 });
    let answer = world.api.call("POST", &path, Some(slip)).await.unwrap();
    let expected = json!(["timeout is not a field here; did you mean timeoutMs?"]);
    assert_eq!(answer["warnings"], expected);
    let nothing = world.open("POST", &path).json(&json!({})).send().await.unwrap();
    let (_, _, body) = crate::world::refusal(nothing).await;
    assert!(body["hint"].as_str().unwrap().contains("neither argv nor cmd"), "{body}");
    let mkdir = path.replace("/commands", "/files:mkdir");
    let strict = world.open("POST", &mkdir).bearer_auth(&world.token);
    let strict = strict.json(&json!({ "path": "a", "parent": true })).send().await.unwrap();
    let (status, code, body) = crate::world::refusal(strict).await;
    assert_eq!((status.as_u16(), code.as_str()), (400, "bad_body"));
    assert_eq!(body["error"], "parent is not a field here; did you mean parents?");
}

#[tokio::test]
async fn a_timeout_is_124_and_a_kill_is_143() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let body = json!({ "cmd": "bash", "args": ["-lc", "sleep 60"], "timeoutMs": 0 });
    let slow = world.api.start(&id, body).await.unwrap();
    assert_eq!(world.api.wait(&id, &slow).await.unwrap(), 124);
    let killed = world.bash(&id, "sleep 60").await;
    let answer = world.open("POST", &format!("{killed}:kill")).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "{\"ok\":true}");
    let command = killed.rsplit('/').next().unwrap();
    assert_eq!(world.api.wait(&id, command).await.unwrap(), 143);
    let status = world.api.status(&id, command).await.unwrap();
    assert_eq!(status["ending"], json!({ "kind": "killed", "by": "loopback", "signal": 15 }));
}

#[tokio::test]
async fn killing_is_true_for_any_command_of_a_known_sandbox() {
    let world = World::start().await;
    let id = world.sandbox().await;
    for command in ["unknown", "a'b;c", "%2e%2e"] {
        let path = format!("/v1/sandboxes/{id}/commands/{command}:kill");
        assert_eq!(world.open("POST", &path).send().await.unwrap().status(), 200, "{command}");
    }
    let path = "/v1/sandboxes/sbaaaaaaaaaaaaaaaa/commands/c:kill";
    assert_eq!(refused(world.open("POST", path)).await, code(404, "sandbox_not_found"));
}

#[tokio::test]
async fn an_unknown_command_is_not_found() {
    let world = World::start().await;
    let id = world.sandbox().await;
    for path in ["c1/wait", "c1/logs", "a%2Fb/logs"] {
        let path = format!("/v1/sandboxes/{id}/commands/{path}");
        assert_eq!(
            refused(world.open("GET", &path)).await,
            code(404, "command_not_found"),
            "{path}"
        );
    }
    let other = world.api.create("other").await.unwrap();
    let foreign = world.bash(&other, "true").await.replace(&other, &id);
    let wait = world.open("GET", &format!("{foreign}/wait"));
    assert_eq!(refused(wait).await, code(404, "command_not_found"));
}

#[tokio::test]
async fn any_program_takes_stdin_by_offset() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let body =
        json!({ "argv": ["cat"], "stdin": "open", "commandId": "mine", "env": { "A": "b" } });
    let path = format!("/v1/sandboxes/{id}/commands");
    let first = world.api.call("POST", &path, Some(body.clone())).await.unwrap();
    assert_eq!(first, json!({ "commandId": "mine", "attached": false }));
    let again = world.api.call("POST", &path, Some(body)).await.unwrap();
    assert_eq!(again["attached"], true, "the id makes a retry attach");
    let conflict = world.open("POST", &path).json(&json!({ "argv": ["ls"], "commandId": "mine" }));
    assert_eq!(refused(conflict).await, code(409, "conflict"));
    let send = async |query: &str, body: &'static str| {
        let url = format!("{path}/mine/stdin?{query}");
        let request = world.open("POST", &url).bearer_auth(&world.token).body(body);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    assert_eq!(send("offset=0", "hel").await["nextOffset"], 3);
    assert_eq!(
        send("offset=0&eof=true", "hello").await,
        json!({ "nextOffset": 5, "closed": true })
    );
    assert_eq!(world.api.wait(&id, "mine").await.unwrap(), 0);
    let logs = world.api.logs(&id, "mine").await.unwrap();
    let out: String = logs.iter().map(|record| record.data.as_str()).collect();
    assert_eq!(out, "hello");
    let listed = world.api.call("GET", &path, None).await.unwrap();
    assert_eq!(listed["commands"][0]["argv"], json!(["cat"]));
    assert_eq!(listed["commands"][0]["exitCode"], 0);
}

#[tokio::test]
async fn signals_and_sizes_reach_a_terminal() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let script = "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done";
    let body = json!({ "argv": ["bash", "-c", script], "pty": { "rows": 24, "cols": 80 } });
    let command = world.api.start(&id, body).await.unwrap();
    let path = format!("/v1/sandboxes/{id}/commands/{command}");
    let mut logs = world.open("GET", &format!("{path}/logs")).send().await.unwrap();
    let first = logs.chunk().await.unwrap().unwrap();
    assert!(first.windows(5).any(|bytes| bytes == b"ready"), "{first:?}");
    let size = json!({ "rows": 30, "cols": 100 });
    world.api.call("POST", &format!("{path}/resize"), Some(size)).await.unwrap();
    assert_eq!(world.api.wait(&id, &command).await.unwrap(), 5);
    let mut rest = String::new();
    while let Some(chunk) = logs.chunk().await.unwrap() {
        rest.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(rest.contains("30 100"), "{rest}");
    let sleeper = world.api.start(&id, json!({ "argv": ["sleep", "60"] })).await.unwrap();
    let path = format!("/v1/sandboxes/{id}/commands/{sleeper}/signal");
    world.api.call("POST", &path, Some(json!({ "signal": "SIGKILL" }))).await.unwrap();
    assert_eq!(world.api.wait(&id, &sleeper).await.unwrap(), 137);
    let bad = world.open("POST", &path).bearer_auth(&world.token).json(&json!({ "signal": "NO" }));
    assert_eq!(refused(bad).await, code(400, "bad_signal"));
}

#[tokio::test]
async fn a_program_that_is_not_there_ends_with_127() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.api.start(&id, json!({ "argv": ["no-such-program"] })).await.unwrap();
    assert_eq!(world.api.wait(&id, &command).await.unwrap(), 127);
}

#[tokio::test]
async fn a_wait_survives_a_broken_channel_and_ends_with_its_sandbox() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkfifo gate").await.unwrap();
    let command = world.bash(&id, "read -r _ < gate; exit 9").await;
    let wait = tokio::spawn(world.open("GET", &format!("{command}/wait")).send());
    world.engine.cut_channels();
    world.api.run(&id, "echo go > gate").await.unwrap();
    let answer: Value = wait.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(answer["exitCode"], 9);
    let endless = world.bash(&id, "sleep 60").await;
    let wait = tokio::spawn(world.open("GET", &format!("{endless}/wait")).send());
    world.api.stop(&id).await.unwrap();
    let response = wait.await.unwrap().unwrap();
    let status = response.status();
    let answer: Value = response.json().await.unwrap();
    assert!(
        (status == 200 && answer["exitCode"].is_i64())
            || (status == 404 && answer["code"] == "gone"),
        "{status} {answer}"
    );
}

#[tokio::test]
async fn a_long_wait_is_lost_only_with_its_sandbox() {
    let world = World::with_eager_waits().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "sleep 60").await;
    let wait = world.open("GET", &format!("{command}/wait")).send().await.unwrap();
    assert_eq!(wait.status(), 200);
    // By the end of a later command the wait has been told of its own.
    world.api.run(&id, "true").await.unwrap();
    world.api.stop(&id).await.unwrap();
    let reply: Value = wait.json().await.unwrap();
    assert_eq!((&reply["exitCode"], &reply["ending"]["kind"]), (&json!(1), &json!("lost")));
}
