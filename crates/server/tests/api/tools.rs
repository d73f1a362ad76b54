//! The tools over HTTP: the gates before them, their schemas, and what a command's output becomes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use reqwest::{RequestBuilder, Response};
use sandbank_test_support::{eventually, wait_for};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) const ON: (&str, &str) = ("REMCOCHAT_ENABLE_BASH_TOOL", "1");
const LIMIT: Duration = Duration::from_secs(20);
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server whose tools are as the section says; the file is kept as long as the test runs.
pub(crate) struct Tools {
    pub(crate) world: World,
    _file: tempfile::NamedTempFile,
}

impl Tools {
    pub(crate) async fn with(section: &str, env: &[(&str, &str)]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("[app.bash_tools]\n{section}\n")).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let env = [&[("REMCOCHAT_CONFIG_PATH", path.as_str())], env].concat();
        Self { world: World::with_env(&env).await, _file: file }
    }

    async fn start() -> Self {
        Self::with("enabled = true", &[ON]).await
    }

    pub(crate) fn post(&self, tool: &str, input: &Value) -> RequestBuilder {
        self.world.open("POST", &format!("/api/tools/{tool}")).body(input.to_string())
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Value {
        let response = self.post(tool, &input).send().await.unwrap();
        assert_eq!(response.status(), 200, "{tool}");
        assert_eq!(response.headers()["x-remcochat-bash-tools-enabled"], "1");
        response.json().await.unwrap()
    }

    pub(crate) async fn bash(&self, command: &str) -> Value {
        self.call("bash", json!({ "command": command })).await
    }

    /// The records of a streamed command.
    pub(crate) async fn streamed(&self, command: &str) -> Vec<Value> {
        let input = json!({ "command": command });
        let response = self.post("bash?stream=ndjson", &input).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        text.lines()
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    async fn listed(&self) -> (Value, String) {
        let response = self.world.open("GET", "/api/tools").send().await.unwrap();
        told(response).await
    }
}

async fn told(response: Response) -> (Value, String) {
    let header = response.headers()["x-remcochat-bash-tools-enabled"].to_str().unwrap().to_owned();
    (response.json().await.unwrap(), header)
}

async fn refused(request: RequestBuilder) -> (u16, String, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let (body, header) = told(response).await;
    (status, body["code"].as_str().unwrap().to_owned(), header)
}

fn refusal(status: u16, code: &str, header: &str) -> (u16, String, String) {
    (status, code.to_owned(), header.to_owned())
}

#[tokio::test]
async fn the_four_tools_do_what_they_say_in_one_sandbox_per_session() {
    let tools = Tools::start().await;
    let (list, header) = tools.listed().await;
    assert_eq!((&list["enabled"], header.as_str()), (&json!(true), "1"));
    let names: Vec<_> =
        list["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["bash", "readFile", "writeFile", "sandboxUrl"]);
    for tool in list["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
    let written = json!({ "path": "a/b.txt", "content": "grüße\n" });
    assert_eq!(tools.call("writeFile", written).await, json!({ "success": true }));
    let read = tools.call("readFile", json!({ "path": "a/b.txt" })).await;
    assert_eq!(read, json!({ "content": "grüße\n", "untrusted": true }));
    let ran = tools.bash("echo out; echo err >&2; exit 3").await;
    let wanted = json!({ "stdout": "out", "stderr": "err", "exitCode": 3, "untrusted": true });
    assert_eq!(ran, wanted);
    let url = tools.call("sandboxUrl", json!({ "port": 3000 })).await;
    assert!(url["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{url}");
    let other = tools.post("sandboxUrl", &json!({ "port": 4000 })).send().await.unwrap();
    assert_eq!(other.status(), 400);
    assert_eq!(
        other.json::<Value>().await.unwrap()["error"],
        "Port 4000 is not published for this sandbox. Set app.bash_tools.sandbox.ports = [4000] and \
         recreate the sandbox."
    );
    let other = tools.post("readFile", &json!({ "path": "a/b.txt" }));
    let other = other.header("x-sandbank-session", "chat:2");
    assert_eq!(refused(other).await, refusal(404, "not_found", "1"));
}

#[tokio::test]
async fn each_gate_that_is_closed_alone_takes_the_tools_away() {
    let input = json!({ "command": "true" });
    for (section, env, code, status) in [
        ("enabled = false", vec![ON], "tools_disabled", 404),
        ("enabled = true", vec![], "tools_switched_off", 404),
        ("enabled = true", vec![("REMCOCHAT_ENABLE_BASH_TOOL", "0")], "tools_switched_off", 404),
    ] {
        let tools = Tools::with(section, &env).await;
        let token = tools.world.token.clone();
        let listed =
            tools.world.open("GET", "/api/tools").bearer_auth(&token).send().await.unwrap();
        let (list, header) = told(listed).await;
        assert_eq!((&list["enabled"], header.as_str()), (&json!(false), "0"), "{section}");
        assert_eq!((&list["code"], &list["tools"]), (&json!(code), &json!([])));
        let call = tools.post("bash", &input).bearer_auth(&token);
        assert_eq!(refused(call).await, refusal(status, code, "0"));
        assert!(tools.world.api.sandboxes().await.unwrap().is_empty());
    }
    let open = Tools::start().await;
    assert_eq!(open.bash("echo yes").await["stdout"], "yes");
}

#[tokio::test]
async fn an_engine_that_does_not_answer_takes_the_tools_away_and_they_come_back_with_it() {
    let tools = Tools::start().await;
    tools.world.engine.is_away.store(true, Ordering::SeqCst);
    let (list, header) = tools.listed().await;
    assert_eq!((&list["enabled"], header.as_str()), (&json!(false), "0"));
    assert_eq!((&list["code"], &list["tools"]), (&json!("tools_unavailable"), &json!([])));
    assert!(list["reason"].as_str().unwrap().contains("does not answer: it is away"), "{list}");
    for call in ["bash", "bash?stream=ndjson"] {
        let call = tools.post(call, &json!({ "command": "true" })).send().await.unwrap();
        assert!(call.headers().contains_key("retry-after"));
        assert_eq!(call.status(), 503);
        let (body, header) = told(call).await;
        assert_eq!((&body["code"], header.as_str()), (&json!("tools_unavailable"), "0"));
    }
    let reset = tools.world.open("DELETE", "/api/tools/session");
    assert_eq!(refused(reset).await, refusal(503, "tools_unavailable", "0"));
    tools.world.engine.is_away.store(false, Ordering::SeqCst);
    wait_for("its word to be asked for again", LIMIT, || async {
        tools.listed().await.0["enabled"] == true
    })
    .await
    .unwrap();
    assert_eq!(tools.bash("echo yes").await["stdout"], "yes");
}

#[tokio::test]
async fn what_a_client_says_of_itself_opens_nothing() {
    let tools = Tools::start().await;
    let input = json!({ "command": "echo yes" });
    assert_eq!(tools.post("bash", &input).send().await.unwrap().status(), 200);
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("x-forwarded-host", "localhost"),
    ] {
        let passed_on = tools.post("bash", &input).header(name, value);
        assert_eq!(refused(passed_on).await, refusal(403, "tools_not_for_you", "0"), "{name}");
        let with_token =
            tools.post("bash", &input).header(name, value).bearer_auth(&tools.world.token);
        assert_eq!(with_token.send().await.unwrap().status(), 200, "{name}");
    }
    let elsewhere = tools.post("bash", &input).header("host", "evil.example");
    assert_eq!(refused(elsewhere).await, refusal(421, "host_not_allowed", "0"));
}

#[tokio::test]
async fn what_has_nothing_to_do_with_a_callers_tools_does_not_speak_of_them() {
    let tools = Tools::start().await;
    for (method, path, status) in [
        ("GET", "/api/tools/approvals", 200),
        ("GET", "/api/tools/approvals/ta1", 404),
        ("POST", "/api/tools/approvals/ta1", 400),
        ("GET", "/api/chat/c/stream", 204),
    ] {
        for request in [tools.world.open(method, path), tools.world.api.request(method, path)] {
            let response = request.send().await.unwrap();
            assert!([401, status].contains(&response.status().as_u16()), "{method} {path}");
            let header = response.headers().get("x-remcochat-bash-tools-enabled");
            assert_eq!(header, None, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn lan_lets_in_who_has_the_token_and_nobody_else() {
    let section = "enabled = true\naccess = \"lan\"";
    let tools = Tools::with(section, &[ON, ("REMCOCHAT_ADMIN_TOKEN", TOKEN)]).await;
    let input = json!({ "command": "echo yes" });
    assert_eq!(refused(tools.post("bash", &input)).await, refusal(401, "unauthorized", "0"));
    let wrong = tools.post("bash", &input).bearer_auth("0123456789abcdef0123456789abcdee");
    assert_eq!(refused(wrong).await, refusal(401, "unauthorized", "0"));
    let right = tools.post("bash", &input).header("x-remcochat-admin-token", TOKEN);
    assert_eq!(right.send().await.unwrap().status(), 200);
    assert_eq!(tools.post("bash", &input).bearer_auth(TOKEN).send().await.unwrap().status(), 200);
    let own = tools.post("bash", &input).bearer_auth(&tools.world.token);
    assert_eq!(own.send().await.unwrap().status(), 200);
    let elsewhere = tools.world.open("GET", "/v1/sandboxes").bearer_auth(TOKEN);
    assert_eq!(elsewhere.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn input_that_does_not_fit_is_refused_before_anything_is_made() {
    let tools = Tools::start().await;
    for (tool, input) in [
        ("bash", json!({})),
        ("bash", json!({ "command": "" })),
        ("bash", json!({ "command": 1 })),
        ("bash", json!({ "command": "true", "timeout": 1 })),
        ("sandboxUrl", json!({ "port": 0 })),
        ("sandboxUrl", json!({ "port": 65_536 })),
        ("writeFile", json!({ "path": "x" })),
    ] {
        let call = tools.post(tool, &input);
        assert_eq!(refused(call).await, refusal(400, "invalid_input", "1"), "{tool} {input}");
    }
    for other in ["nothing", "listFiles", "Bash"] {
        let call = tools.post(other, &json!({}));
        assert_eq!(refused(call).await, refusal(404, "unknown_tool", "1"), "{other}");
    }
    assert!(tools.world.api.sandboxes().await.unwrap().is_empty());
    for path in ["../x", "/etc/passwd"] {
        let call = tools.post("writeFile", &json!({ "path": path, "content": "x" }));
        assert_eq!(call.send().await.unwrap().status(), 400, "{path}");
    }
}

#[tokio::test]
async fn a_stream_begins_at_once_and_ends_with_the_code() {
    let tools = Tools::start().await;
    let records = tools.streamed("echo a; echo b >&2; exit 5").await;
    let first = json!({ "stdout": "", "stderr": "", "exitCode": -1, "untrusted": true });
    assert_eq!(records[0], json!({ "type": "progress", "output": first }));
    let last = json!({ "stdout": "a\n", "stderr": "b\n", "exitCode": 5, "untrusted": true });
    assert_eq!(*records.last().unwrap(), json!({ "type": "done", "output": last }));
    assert!(records.iter().rev().skip(1).all(|record| record["output"]["exitCode"] == -1));
}

#[tokio::test]
async fn slow_output_is_told_as_it_comes_and_huge_output_is_bounded() {
    let tools = Tools::with("enabled = true\nmax_stdout_chars = 1000", &[ON]).await;
    let records = tools.streamed("echo one; sleep 0.4; echo two; sleep 0.4; echo three").await;
    let texts: Vec<_> =
        records.iter().map(|record| record["output"]["stdout"].as_str().unwrap()).collect();
    for step in ["one\n", "one\ntwo\n", "one\ntwo\nthree\n"] {
        assert!(texts.contains(&step), "{texts:?}");
    }
    let begin = Instant::now();
    let records = tools.streamed("yes 'grüße 😀' | head -n 200000").await;
    let output = &records.last().unwrap()["output"];
    assert_eq!(output["exitCode"], 0);
    let text = output["stdout"].as_str().unwrap();
    assert_eq!(text.chars().count(), 1000);
    assert!(text.ends_with("grüße 😀\n") && !text.contains('\u{fffd}'));
    assert_eq!(output["stdoutTruncatedChars"], 200_000 * 8 - 1000);
    assert!(output.get("stderrTruncatedChars").is_none());
    let most = begin.elapsed().as_millis() / 150 + 2000 / 512 + 2;
    assert!(records.len() as u128 <= most, "{} records, at most {most}", records.len());
}

#[tokio::test]
async fn at_the_end_the_beginning_is_told_with_a_notice() {
    let tools = Tools::with("enabled = true\nmax_stdout_chars = 200", &[ON]).await;
    let whole = tools.bash("printf 'ü%.0s' $(seq 201); printf '  \\n\\n'").await;
    let wanted = format!("{}\n\n[stdout truncated: 1 characters removed]", "ü".repeat(200));
    assert_eq!(whole["stdout"], wanted);
    let invalid = tools.bash("printf 'a\\xffb'").await;
    assert_eq!(invalid["stdout"], "a\u{fffd}b");
}

#[tokio::test]
async fn a_timeout_says_so_and_keeps_what_was_printed() {
    let tools = Tools::with("enabled = true\ntimeout_ms = 1000", &[ON]).await;
    let command = "echo begun; echo problem >&2; (setsid sleep 60 &) ; sleep 60";
    let records = tools.streamed(command).await;
    let wanted = json!({
        "stdout": "begun\n", "stderr": "Command timed out after 1000ms.", "exitCode": 124,
        "untrusted": true,
    });
    assert_eq!(records.last().unwrap()["output"], wanted);
    let at_the_end = tools.bash("echo begun; sleep 60").await;
    assert_eq!((&at_the_end["exitCode"], &at_the_end["stdout"]), (&json!(124), &json!("begun")));
    assert_eq!(at_the_end["stderr"], "Command timed out after 1000ms.");
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_command() {
    let tools = Tools::start().await;
    for stream in ["", "?stream=sse"] {
        let name = format!("alive{}", stream.len());
        let command = format!("while :; do date +%s%N > {name}; sleep 0.05; done");
        let call = tools.post(&format!("bash{stream}"), &json!({ "command": command }));
        let calling = tokio::spawn(async move {
            let mut body = call.send().await.unwrap().bytes_stream();
            while body.next().await.is_some() {}
        });
        let beat = || async {
            let read = json!({ "path": name });
            let response = tools.post("readFile", &read).send().await.unwrap();
            response.json::<Value>().await.unwrap()["content"].as_str().map(str::to_owned)
        };
        wait_for("the command to run", LIMIT, || async { beat().await.is_some() }).await.unwrap();
        calling.abort();
        eventually("the command to end", LIMIT, || async {
            let before = beat().await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            (beat().await == before).then_some(())
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_session_can_begin_anew() {
    let tools = Tools::start().await;
    tools.bash("echo x > kept").await;
    assert_eq!(tools.bash("cat kept").await["stdout"], "x");
    let reset = tools.world.open("DELETE", "/api/tools/session").send().await.unwrap();
    assert_eq!(reset.status(), 200);
    assert_eq!(tools.bash("cat kept").await["exitCode"], 1);
    let none = tools.world.open("DELETE", "/api/tools/session");
    let none = none.header("x-sandbank-session", "never-was").send().await.unwrap();
    assert_eq!(none.status(), 200);
}

#[tokio::test]
async fn a_call_that_waits_when_its_token_is_revoked_is_never_made() {
    let rules = "enabled = true\n[[app.bash_tools.approvals.rules]]\naction = \"ask\"\n\
                 command = \"touch\"";
    let tools = Tools::with(rules, &[ON]).await;
    let api = &tools.world.api;
    let made = json!({ "name": "guest", "scope": "sandbox" });
    let made = api.call("POST", "/v1/tokens", Some(made)).await.unwrap();
    let asking = tools.post("bash", &json!({ "command": "touch made" }));
    let asking = tokio::spawn(refused(asking.bearer_auth(made["token"].as_str().unwrap())));
    let questions = || async {
        let list = api.call("GET", "/api/tools/approvals", None).await.unwrap();
        list["approvals"].get(0).cloned()
    };
    let question = eventually("a person is asked", LIMIT, questions).await.unwrap();
    api.call("DELETE", "/v1/tokens/guest", None).await.unwrap();
    let answer = tokio::time::timeout(LIMIT, asking).await.expect("it is answered").unwrap();
    assert_eq!(answer, refusal(401, "unauthorized", "0"));
    let is_withdrawn = || async { questions().await.unwrap()["status"] == "withdrawn" };
    wait_for("the question is withdrawn", LIMIT, is_withdrawn).await.unwrap();
    let allow = json!({ "decision": "allow", "digest": question["digest"] });
    let path = format!("/api/tools/approvals/{}", question["id"].as_str().unwrap());
    assert_eq!(api.try_call("POST", &path, Some(allow)).await.unwrap().0, 410);
    assert_eq!(tools.bash("ls").await["stdout"], "");
}

#[tokio::test]
async fn a_chat_has_its_sandbox_also_by_the_longest_name() {
    let chat = "enabled = true\n[app.chat]\nmodel = \"none\"\nbase_url = \"http://127.0.0.1:1/v1\"";
    let tools = Tools::with(chat, &[ON]).await;
    let parts = json!([{ "type": "text", "text": "/bash echo made" }]);
    let message = json!({ "id": "1", "role": "user", "parts": parts });
    let said = json!({ "id": "x".repeat(128), "messages": [message] });
    let answer = tools.world.open("POST", "/api/chat").body(said.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    assert!(text.contains("\"stdout\":\"made\""), "{text}");
}
