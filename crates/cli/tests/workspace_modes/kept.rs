//! What a workspace keeps: approvals and what was set in chats over a restart, each user's sessions
//! from the others, whole files when the daemon is killed, and its memory small.

use std::time::Duration;

use sandbank_test_support::{Pty, TestDaemon, skip_unless_root, wait_for};
use serde_json::{Value, json};

use super::{SANDBANK, TERMINAL};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn approvals_are_kept_over_a_restart_and_a_kill_of_the_daemon() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start_with(SANDBANK, &[("WORKSPACE_MODE", "sandbox")]).await?;
    let api = daemon.api()?;
    let ask = |name: &str| {
        let body = json!({ "tool_name": name, "description": "why", "metadata": { "a": [1] } });
        let api = &api;
        async move {
            let asked = api.call("POST", "/api/approval/request", Some(body)).await?;
            anyhow::Ok(asked["request_id"].as_str().unwrap().to_owned())
        }
    };
    let (decided, open, gone) = (ask("decided").await?, ask("open").await?, ask("gone").await?);
    let approve = json!({ "request_id": decided, "decision": "approve" });
    api.call("POST", "/api/approval/decision", Some(approve)).await?;
    api.call("DELETE", &format!("/api/approval/{gone}"), None).await?;
    let pending = api.call("GET", "/api/approval/pending", None).await?;
    assert_eq!(pending["count"], 1, "{pending}");
    let status = api.call("GET", &format!("/api/approval/status/{decided}"), None).await?;
    for is_killed in [true, false] {
        if is_killed {
            daemon.kill_9()?;
        } else {
            daemon.terminate().await?;
        }
        daemon.launch().await?;
        assert_eq!(api.call("GET", "/api/approval/pending", None).await?, pending);
        let again = api.call("GET", &format!("/api/approval/status/{decided}"), None).await?;
        assert_eq!(again, status);
        let deleted = api.try_call("GET", &format!("/api/approval/status/{gone}"), None).await?;
        assert_eq!(deleted.0, 404, "{}", deleted.1);
        let twice = json!({ "request_id": decided, "decision": "deny" });
        let twice = api.try_call("POST", "/api/approval/decision", Some(twice)).await?;
        assert_eq!(twice.0, 409, "{}", twice.1);
    }
    let deny = json!({ "request_id": open, "decision": "deny" });
    api.call("POST", "/api/approval/decision", Some(deny)).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_in_a_chat_outlives_a_kill_of_the_daemon() -> anyhow::Result<()> {
    /// Says what it was started with, then each line that it is given; `die` ends it.
    const AGENT: &str = r#"
printf '{"type":"began","args":"%s"}\n' "$*"
while read -r line; do
    case $line in
        *die*) exit 0 ;;
        *) printf '{"type":"heard","line":%s}\n' "$line" ;;
    esac
done
"#;
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("WORKSPACE_MODE", "sandbox"), ("SANDBANK_CHAT_COMMAND", "bash,agent.sh")];
    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    api.call("PUT", "/api/file?path=agent.sh", Some(json!({ "content": AGENT }))).await?;
    let (url, token) = (daemon.url(), daemon.token()?);
    let query = "session_id=66666666-6666-4666-8666-666666666666&model=sonnet&mode=ask";
    let args = |began: &Value| began["args"].as_str().unwrap().to_owned();
    let mut chat = Pty::chat(&url, &token, query).await?;
    let began = args(&chat.said("began").await?);
    assert!(began.contains("--permission-mode default --model sonnet"), "the control: {began}");
    for control in [
        json!({ "type": "control", "subtype": "set_model", "model": "opus" }),
        json!({ "type": "control", "subtype": "set_permission_mode", "mode": "plan" }),
        json!({ "type": "control", "subtype": "set_max_thinking_tokens", "max_thinking_tokens": 99 }),
    ] {
        chat.say(control).await?;
        chat.said("heard").await?;
    }
    let is_set = |began: &str| {
        began.contains("--permission-mode plan --model opus")
            && began.contains("--max-thinking-tokens 99")
    };
    daemon.kill_9()?;
    daemon.launch().await?;
    // Its program went on; the next one is told.
    let mut chat = Pty::chat(&url, &token, query).await?;
    assert_eq!(chat.said("system").await?["settings"]["model"], "opus");
    chat.say(json!({ "type": "restart" })).await?;
    while !is_set(&args(&chat.said("began").await?)) {}
    chat.say(json!({ "type": "user", "message": "die" })).await?;
    chat.closed().await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let mut chat = Pty::chat(&url, &token, query).await?;
    let began = args(&chat.said("began").await?);
    assert!(is_set(&began), "after its end and a kill: {began}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_bound_to_their_users_and_so_is_the_sandbox_behind_them() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [
        ("WORKSPACE_MODE", "sandbox"),
        ("AUTH_IDENTITY_BINDING_ENABLED", "true"),
        ("SANDBANK_PTY_SHELL_COMMAND", TERMINAL),
        ("SANDBANK_WORKSPACE_LOOPBACK_OPEN", "false"),
    ];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let admin = daemon.api()?;
    let user = |name: &'static str| {
        let body = json!({ "name": name, "scope": "sandbox" });
        let admin = &admin;
        async move {
            let made = admin.call("POST", "/v1/tokens", Some(body)).await?;
            anyhow::Ok(made["token"].as_str().unwrap().to_owned())
        }
    };
    let (first, second) = (user("first").await?, user("second").await?);
    let url = daemon.url();
    let of = |token: &str| sandbank_test_support::Api::new(url.clone(), token.to_owned());
    let id = "44444444-4444-4444-8444-444444444444";
    let mut pty = Pty::open(&url, &first, &format!("session_id={id}")).await?;
    pty.read_until("ready\r\n").await?;
    let sessions = |token: &str| {
        let api = of(token);
        async move {
            let list = api.call("GET", "/api/sessions", None).await?;
            anyhow::Ok(list["sessions"].as_array().unwrap().clone())
        }
    };
    assert_eq!(sessions(&first).await?.len(), 1);
    assert_eq!(sessions(&second).await?, Vec::<Value>::new());
    let mut stolen = Pty::open(&url, &second, &format!("session_id={id}&resume=1")).await?;
    assert_eq!(stolen.frame().await?["type"], "session_not_found");

    let sandboxes = admin.sandboxes().await?;
    let sandbox = sandboxes[0]["id"].as_str().unwrap();
    let commands = format!("/v1/sandboxes/{sandbox}/commands");
    let listed = admin.call("GET", &commands, None).await?;
    let command = listed["commands"][0]["commandId"].as_str().unwrap().to_owned();
    admin.request("PUT", "/api/file?path=note").json(&json!({ "content": "x" })).send().await?;
    let start = json!({ "argv": ["true"] });
    let routes = [
        ("GET", format!("/v1/sandboxes/{sandbox}"), None),
        ("GET", commands.clone(), None),
        ("GET", format!("{commands}/{command}"), None),
        ("GET", format!("{commands}/{command}/screen"), None),
        ("GET", format!("{commands}/{command}/logs?follow=false"), None),
        ("POST", commands.clone(), Some(start)),
        ("GET", format!("/v1/sandboxes/{sandbox}/files?path=note"), None),
    ];
    for (method, path, body) in &routes {
        for token in [&first, &second] {
            let (status, answer) = of(token).try_call(method, path, body.clone()).await?;
            assert_eq!((status, &answer["code"]), (404, &json!("sandbox_not_found")), "{path}");
        }
        let sent = admin.request(method, path);
        let sent = body.iter().fold(sent, |sent, body| sent.json(body));
        let status = sent.send().await?.status();
        assert!(status.is_success(), "{method} {path}: {status}");
    }
    for token in [&first, &second] {
        let attach = of(token).attach(&format!("{commands}/{command}"), "").await;
        assert!(attach.err().unwrap().to_string().contains("404"), "attached");
        let deleted =
            of(token).try_call("DELETE", &format!("/v1/sandboxes/{sandbox}"), None).await?;
        assert_eq!(deleted.1["code"], "sandbox_not_found", "{}", deleted.1);
        let listed = of(token).call("GET", "/v1/sandboxes", None).await?;
        assert!(!listed.to_string().contains(sandbox), "{listed}");
    }
    admin.attach(&format!("{commands}/{command}"), "").await?;
    // The one whose it is goes on.
    pty.input("echo still''-here\n").await?;
    pty.read_until("still-here\r\n").await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_killed_in_the_middle_of_writes_leaves_one_whole_version()
-> anyhow::Result<()> {
    const BYTES: usize = 4 << 20;
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start_with(SANDBANK, &[("WORKSPACE_MODE", "sandbox")]).await?;
    let api = daemon.api()?;
    let content = |n: u8| char::from(b'a' + n % 26).to_string().repeat(BYTES);
    let first = json!({ "content": content(0) });
    api.call("PUT", "/api/file?path=file", Some(first)).await?;
    let mut cut = 0;
    for kill in 0..4 {
        let writers: Vec<_> = (0..6)
            .map(|n| {
                let body = json!({ "content": content(kill * 6 + n) });
                let request = api.request("PUT", "/api/file?path=file").json(&body);
                // Again and again, until one is cut off or the daemon is gone between two.
                tokio::spawn(async move {
                    loop {
                        match request.try_clone().unwrap().send().await {
                            Ok(sent) => assert_eq!(sent.status(), 200),
                            Err(error) => return !error.is_connect(),
                        }
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(40 * u64::from(kill + 1))).await;
        daemon.kill_9()?;
        for writer in writers {
            cut += u32::from(writer.await?);
        }
        daemon.launch().await?;
        let read = api.call("GET", "/api/file?path=file", None).await?;
        let read = read["content"].as_str().unwrap();
        let letter = read.chars().next();
        assert!(read.len() == BYTES && read.chars().all(|c| Some(c) == letter), "a mixture");
        let is_alone = || async {
            let tree = api.call("GET", "/api/tree", None).await;
            tree.is_ok_and(|tree| tree["entries"].as_array().unwrap().len() == 1)
        };
        wait_for("nothing else is left of the writes", PATIENCE, is_alone).await?;
    }
    assert!(cut > 0, "no write was under way");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_or_binary_file_has_its_answer_and_costs_the_daemon_no_memory() -> anyhow::Result<()>
{
    const MAX_GROWTH_BYTES: u64 = 64 << 20;
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start_with(SANDBANK, &[("WORKSPACE_MODE", "sandbox")]).await?;
    let api = daemon.api()?;
    api.call("PUT", "/api/file?path=text", Some(json!({ "content": "text" }))).await?;
    let sandboxes = api.sandboxes().await?;
    let sandbox = sandboxes[0]["id"].as_str().unwrap();
    let script = "git init -q --template= . && truncate -s 10G huge && head -c 9000000 /dev/zero \
                  | tr '\\0' '\\377' > binary";
    let (code, _, said) = api.run(sandbox, script).await?;
    assert_eq!(code, 0, "{said}");
    let before = resident_bytes(&daemon)?;
    for _ in 0..20 {
        let huge = api.try_call("GET", "/api/file?path=huge", None).await?;
        assert_eq!(huge.0, 413, "{}", huge.1);
        let binary = api.try_call("GET", "/api/file?path=binary", None).await?;
        let detail = json!({ "detail": "File is not UTF-8 text: binary" });
        assert_eq!(binary, (415, detail));
        let tree = api.call("GET", "/api/tree", None).await?;
        let entry =
            json!({ "name": "huge", "path": "huge", "is_dir": false, "size": 10_u64 << 30 });
        assert!(tree["entries"].as_array().unwrap().contains(&entry), "{tree}");
        let show = api.call("GET", "/api/git/show?path=huge", None).await?;
        assert_eq!(show["error"], "Not in HEAD", "{show}");
        assert_eq!(api.call("GET", "/api/file?path=text", None).await?["content"], "text");
    }
    let grown = resident_bytes(&daemon)?.saturating_sub(before);
    println!("{} MiB more", grown >> 20);
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes more");
    daemon.finish().await
}

fn resident_bytes(daemon: &TestDaemon) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid().unwrap()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
