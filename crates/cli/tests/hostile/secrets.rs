//! Canaries given to the daemon are found nowhere they do not belong (T75, T76).

use std::path::PathBuf;
use std::time::Duration;

use sandbank_test_support::{SUITE_IMAGE, TestDaemon, is_over_docker, skip_unless_root, wait_for};
use serde_json::json;

use crate::SANDBANK;

const ADMIN: &str = "canary-admin-5f1d";
const CREATE_ENV: &str = "canary-create-env-77aa";
const COMMAND_ENV: &str = "canary-command-env-19c3";
const BODY: &str = "canary-body-e02b";
const STDIN: &str = "canary-stdin-90dd";
const WRONG_TOKEN: &str = "canary-wrong-token-aa01";
const WRONG_BODY: &str = "canary-wrong-body-b7b7";

/// What the daemon writes, and what Docker does for it: descriptions of containers, and volumes.
fn places(daemon: &TestDaemon) -> Vec<PathBuf> {
    let docker = daemon.docker().map(|docker| docker.dir().join("data"));
    let docker = docker.iter().flat_map(|data| ["containers", "volumes"].map(|d| data.join(d)));
    docker.chain([daemon.data_dir().to_owned()]).collect()
}

/// Files that hold this text.
fn holding(daemon: &TestDaemon, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = places(daemon);
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() && entry.metadata().is_ok_and(|m| m.len() < 64 << 20) {
                let content = std::fs::read(&path).unwrap_or_default();
                if String::from_utf8_lossy(&content).contains(needle) {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_log_no_database_no_record_and_no_error() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let image = if is_over_docker() { SUITE_IMAGE } else { "host" };
    let pool = format!("{image}@none=1");
    // Plain storage keeps workspaces below the data directory, where the search sees them.
    let settings = [
        ("SANDBANK_LOG", "trace"),
        ("SANDBANK_ADMIN_TOKEN", ADMIN),
        ("SANDBANK_STORAGE", "plain"),
        ("SANDBANK_POOL", &*pool),
    ];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = sandbank_test_support::Api::new(daemon.url(), ADMIN.to_owned());
    let made =
        api.call("POST", "/v1/tokens", Some(json!({ "name": "t", "scope": "sandbox" }))).await?;
    let scoped = made["token"].as_str().unwrap().to_owned();
    let scoped_api = sandbank_test_support::Api::new(daemon.url(), scoped.clone());
    let metrics = async || anyhow::Ok(api.request("GET", "/metrics").send().await?.text().await?);
    wait_for("a ready machine", Duration::from_secs(20), || async {
        let ready = format!("sandbank_pool_ready{{image=\"{image}\",network=\"none\"}} 1");
        metrics().await.is_ok_and(|text| text.contains(&ready))
    })
    .await?;
    // Variables take another way into a machine that was ready.
    let mut body = json!({ "sessionKey": "cold", "network": { "mode": "none" }, "env": { "KEY": CREATE_ENV } });
    body["resources"] = json!({ "pids": 99 });
    let cold = scoped_api.call("POST", "/v1/sandboxes", Some(body.clone())).await?;
    body["sessionKey"] = json!("s");
    body["resources"] = json!({});
    let ready = scoped_api.call("POST", "/v1/sandboxes", Some(body)).await?;
    assert_eq!((&cold["acquireSource"], &ready["acquireSource"]), (&json!("cold"), &json!("pool")));
    let id = ready["sandboxId"].as_str().unwrap().to_owned();
    let script = "echo ${#KEY} ${#TOKEN} $(wc -c)";
    let body = json!({
        "argv": ["sh", "-c", script], "env": { "TOKEN": COMMAND_ENV }, "stdin": "open",
    });
    let command = scoped_api.start(&id, body).await?;
    let stdin = format!("/v1/sandboxes/{id}/commands/{command}/stdin?eof=true");
    assert_eq!(api.request("POST", &stdin).body(STDIN).send().await?.status(), 200);
    let out: String = api.logs(&id, &command).await?.iter().map(|r| r.data.as_str()).collect();
    let lengths = [CREATE_ENV, COMMAND_ENV, STDIN].map(str::len);
    assert_eq!(out, format!("{} {} {}\n", lengths[0], lengths[1], lengths[2]), "all arrived");
    api.write(&id, "/workspace/f", BODY.as_bytes()).await?;

    let mut errors = String::new();
    let wrong = sandbank_test_support::Api::new(daemon.url(), WRONG_TOKEN.to_owned());
    errors += &wrong.try_call("GET", "/v1/sandboxes", None).await?.1.to_string();
    let bad = json!({ "sessionKey": ["x"], "env": { WRONG_BODY: 1 } });
    errors += &api.try_call("POST", "/v1/sandboxes", Some(bad)).await?.1.to_string();
    for secret in [ADMIN, CREATE_ENV, COMMAND_ENV, BODY, STDIN, WRONG_TOKEN, &scoped] {
        assert!(!errors.contains(secret), "{secret} is in an error: {errors}");
    }
    let listed = api.call("GET", "/v1/sandboxes", None).await?.to_string();
    let tokens = api.call("GET", "/v1/tokens", None).await?.to_string();
    let numbers = metrics().await?;
    assert!(numbers.contains("sandbank_sandboxes{state=\"running\"} 2"), "{numbers}");
    for secret in [ADMIN, CREATE_ENV, &scoped] {
        for shown in [&listed, &tokens, &numbers] {
            assert!(!shown.contains(secret), "{secret} is in {shown}");
        }
    }

    // The search finds what is there, and what is a sandbox's own is only there.
    let in_workspace = holding(&daemon, BODY);
    assert!(!in_workspace.is_empty(), "the search sees nothing");
    assert!(in_workspace.iter().all(|path| path.ends_with("/f")), "{in_workspace:?}");
    for secret in [ADMIN, CREATE_ENV, COMMAND_ENV, STDIN, WRONG_TOKEN, WRONG_BODY, &scoped] {
        let found = holding(&daemon, secret);
        assert!(found.is_empty(), "{secret} while it runs: {found:?}");
    }
    api.stop(&id).await?;
    wait_for("the post-mortem", Duration::from_secs(20), || async {
        api.call("GET", &format!("/v1/sandboxes/{id}/post-mortem"), None).await.is_ok()
    })
    .await?;
    for secret in [ADMIN, CREATE_ENV, COMMAND_ENV, BODY, STDIN, WRONG_TOKEN, WRONG_BODY, &scoped] {
        let found = holding(&daemon, secret);
        assert!(found.is_empty(), "{secret} at the end: {found:?}");
    }
    daemon.finish().await
}

/// Looks at everything of every process that the workload can read.
const SEARCH: &str = r#"
import os, sys
needles = [n.encode() for n in sys.argv[1].split(',')]
seen = 0
for pid in [p for p in os.listdir('/proc') if p.isdigit()] + ['self']:
    places = ['environ', 'cmdline', 'maps', 'status', 'mountinfo', 'comm', 'auxv']
    try:
        places += ['fd/' + fd for fd in os.listdir('/proc/%s/fd' % pid)]
    except OSError:
        pass
    for place in places:
        path = '/proc/%s/%s' % (pid, place)
        try:
            names = [os.readlink(path).encode()] if place.startswith('fd/') else []
            if place.startswith('fd/') and not os.path.isfile(path):
                texts = names
            else:
                texts = names + [open(path, 'rb').read(1 << 20)]
            seen += 1
        except OSError:
            continue
        for text in texts:
            for needle in needles:
                if needle in text:
                    print('found', needle.decode(), 'in', pid, place)
for top in ['/etc', '/run', '/tmp', '/var', '/home', '/vercel', '/dev']:
    for root, _, files in os.walk(top):
        for name in files:
            path = os.path.join(root, name)
            try:
                if os.path.isfile(path) and any(n in open(path, 'rb').read(1 << 20) for n in needles):
                    print('found in', path)
            except OSError:
                pass
print('looked at', seen)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_the_workload_can_read_holds_a_secret_of_the_daemon() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_ADMIN_TOKEN", ADMIN)];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let id = api.create("inside").await?;
    let other = json!({ "sessionKey": "other", "network": { "mode": "none" }, "env": { "KEY": CREATE_ENV } });
    api.create_with(other).await?;
    api.write(&id, "/workspace/search.py", SEARCH.as_bytes()).await?;
    let needles = [ADMIN, &daemon.token()?, CREATE_ENV].join(",");
    // The search itself has the needles among its arguments: they come by standard input.
    let script = "read -r needles; exec 3<<<\"$needles\"; python3 -c \
        'import sys,runpy; sys.argv=[\"search\", open(3).read().strip()]; runpy.run_path(\"search.py\")'";
    let command =
        api.start(&id, json!({ "argv": ["bash", "-c", script], "stdin": "open" })).await?;
    let stdin = format!("/v1/sandboxes/{id}/commands/{command}/stdin?eof=true");
    assert_eq!(
        api.request("POST", &stdin).body(format!("{needles}\n")).send().await?.status(),
        200
    );
    let out: String = api.logs(&id, &command).await?.iter().map(|r| r.data.as_str()).collect();
    assert_eq!(api.wait(&id, &command).await?, 0, "{out}");
    assert!(out.contains("looked at"), "{out}");
    let leaks: Vec<&str> = out
        .lines()
        .filter(|line| line.starts_with("found"))
        // The here-document that carries the needles is a file of the search's own.
        .filter(|line| !line.contains(" fd/") && !line.contains("in /tmp/"))
        .collect();
    assert!(leaks.is_empty(), "{leaks:?}");
    // The same search finds what a command itself has in its environment.
    let body =
        json!({ "argv": ["python3", "search.py", "canary-own"], "env": { "OWN": "canary-own" } });
    let command = api.start(&id, body).await?;
    let out: String = api.logs(&id, &command).await?.iter().map(|r| r.data.as_str()).collect();
    assert!(out.contains("found canary-own in self environ"), "{out}");
    let (_, first, _) =
        api.run(&id, "cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/maps; true").await?;
    assert_eq!(first, "", "the runner shows nothing of itself");
    daemon.finish().await
}
