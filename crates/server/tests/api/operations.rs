//! The workspace of `/api` as whoever runs it sees it: health, readiness, ids of requests, numbers,
//! limits; and the routes beside files: attachments and records of sandboxes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use sandbank_test_support::wait_for;
use sandbank_workspace::{KeyFile, Keys, RemotePlace, RemoteSettings};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::everywhere::{everywhere, remote};
use crate::log_lines::capture;
use crate::world::World;

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn unreachable() -> World {
    let keys = Arc::new(KeyFile::fixed(Keys::parse(&"s".repeat(40)).unwrap()));
    let far = RemotePlace::new(&RemoteSettings::new("http://127.0.0.1:1"), keys).unwrap();
    let settings = [
        ("workspace.mode", "remote"),
        ("workspace.service_url", "http://127.0.0.1:1"),
        ("workspace.service_secret_file", "/nowhere"),
    ];
    World::with_workspace(&settings, Arc::new(far)).await
}

#[tokio::test]
async fn health_and_readiness_are_told_to_everybody_wherever_the_workspace_is() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        let (status, health) = answer(world.open("GET", "/healthz")).await;
        assert_eq!((status, &health["status"]), (200, &json!("ok")), "{health}");
        let (status, ready) = answer(world.open("GET", "/readyz")).await;
        assert_eq!((status, &ready["status"]), (200, &json!("ready")), "{ready}");
        let mut names = vec!["data_directory", "engine", "workspace_service", "workspace_version"];
        if place.mode == "remote" {
            names.insert(2, "workspace_breaker");
        }
        let checks = ready["checks"].as_object().unwrap();
        assert_eq!(checks.keys().collect::<Vec<_>>(), names);
        for name in names {
            assert_eq!(checks[name]["status"], "healthy", "{ready}");
            assert!(checks[name]["message"].is_string() && checks[name]["critical"].is_boolean());
            assert_eq!(health["checks"][name]["status"], "healthy", "{health}");
        }
        let version = json!({ "version": "0.1.0", "compatible_from": "0.1.0" });
        assert_eq!(answer(world.open("GET", "/__meta/version")).await, (200, version));
        place.end().await;
    }
}

#[tokio::test]
async fn without_a_workspace_health_is_what_sandkastens_clients_know() {
    let world = World::start().await;
    assert_eq!(answer(world.open("GET", "/healthz")).await, (200, json!({ "status": "ok" })));
    let (status, ready) = answer(world.open("GET", "/readyz")).await;
    assert_eq!((status, &ready["status"]), (200, &json!("ready")));
    assert_eq!(ready["checks"].as_object().unwrap().len(), 2, "{ready}");
    for (method, path) in
        [("GET", "/api/approval/pending"), ("POST", "/api/attachments"), ("GET", "/api/sandbox")]
    {
        let (status, body) = answer(world.api.request(method, path)).await;
        assert_eq!(status, 404, "{path}");
        assert!(body["detail"].as_str().unwrap().contains("WORKSPACE_MODE"), "{body}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_not_ready_and_its_address_is_not_told() {
    let world = unreachable().await;
    let (status, ready) = answer(world.open("GET", "/readyz")).await;
    assert_eq!((status, &ready["status"]), (503, &json!("not_ready")));
    let service = &ready["checks"]["workspace_service"];
    assert_eq!((&service["status"], &service["critical"]), (&json!("unhealthy"), &json!(true)));
    assert!(service["message"].as_str().unwrap().starts_with("unreachable: "), "{ready}");
    assert_eq!(ready["checks"]["workspace_version"]["status"], "unknown");
    assert_eq!(ready["checks"]["workspace_breaker"]["message"], "closed");
    assert!(!ready.to_string().contains("127.0.0.1"), "{ready}");
    let (status, health) = answer(world.open("GET", "/healthz")).await;
    assert_eq!((status, &health["status"]), (200, &json!("degraded")), "{health}");
}

#[tokio::test]
async fn an_attachment_is_a_file_of_the_workspace_under_a_name_of_the_servers() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        let send = |name: &str, content: Vec<u8>| {
            let form = Form::new().part("file", Part::bytes(content).file_name(name.to_owned()));
            world.api.request("POST", "/api/attachments").multipart(form)
        };
        let (status, attached) = answer(send("../../n\u{f6}tes.txt", b"hello".to_vec())).await;
        assert_eq!(status, 200, "{attached}");
        assert_eq!((&attached["name"], &attached["size"]), (&json!("n\u{f6}tes.txt"), &json!(5)));
        let id = attached["file_id"].as_str().unwrap();
        let path = format!(".attachments/{id}/n\u{f6}tes.txt");
        assert_eq!(attached["relative_path"], path);
        let read = world.api.request("GET", "/api/file").query(&[("path", &path)]);
        assert_eq!(answer(read).await, (200, json!({ "content": "hello", "path": path })));
        let (_, again) = answer(send("n\u{f6}tes.txt", vec![0, 255])).await;
        assert_ne!(again["file_id"], attached["file_id"]);
        place.git(&["init", "-q"]).await;
        let (_, status) = answer(world.api.request("GET", "/api/git/status")).await;
        assert_eq!(status["files"], json!({}), "attachments are not for the repository");
        let (status, full) = answer(send("full", vec![b'x'; 10 << 20])).await;
        assert_eq!((status, &full["size"]), (200, &json!(10 << 20)));
        assert_eq!(answer(send("large", vec![b'x'; (10 << 20) + 1])).await.0, 413);
        let (status, body) = answer(world.api.request("POST", "/api/attachments")).await;
        assert_eq!((status, &body["detail"][0]["loc"]), (422, &json!(["body", "file"])));
        place.end().await;
    }
}

#[tokio::test]
async fn sandboxes_are_noted_used_and_resolved_as_in_the_original() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    let get = |path: &str| answer(world.api.request("GET", path));
    let post = |path: &str, body: Value| answer(world.api.request("POST", path).json(&body));
    let nothing = json!({ "mode": "local", "sandbox_id": null, "target_base_url": null,
        "reason": "no_sandbox_selected" });
    assert_eq!(get("/api/sandbox").await, (200, json!([])));
    assert_eq!(get("/api/sandbox/target").await, (200, nothing.clone()));
    let none = json!({ "active_sandbox_id": null, "sandbox": null });
    assert_eq!(get("/api/sandbox/active").await, (200, none));
    let request = json!({ "name": "one", "target_base_url": "http://a", "labels": { "k": "v" },
        "workspace_id": "w" });
    let (status, one) = post("/api/sandbox", request).await;
    let one = &one["sandbox"];
    assert_eq!((status, &one["status"], &one["owner"]), (200, &json!("pending"), &json!(null)));
    assert_eq!((&one["labels"], &one["metadata"]), (&json!({ "k": "v" }), &json!({})));
    assert_eq!((&one["started_at"], one["created_at"].is_string()), (&json!(null), true));
    let id = one["id"].as_str().unwrap();
    let request = json!({ "name": "two", "target_base_url": "http://b" });
    let (_, two) = post("/api/sandbox", request).await;
    let other = two["sandbox"]["id"].as_str().unwrap();
    let target = |id: &str, url: &str, reason: &str| {
        let target = json!({ "mode": "sandbox", "sandbox_id": id, "target_base_url": url,
            "reason": reason });
        (200, target)
    };
    assert_eq!(get("/api/sandbox/target").await, target(id, "http://a", "active_sandbox"));
    let named = get(&format!("/api/sandbox/target?sandbox_id={other}")).await;
    assert_eq!(named, target(other, "http://b", "explicit_sandbox_id"));
    let (_, started) = post(&format!("/api/sandbox/{id}/start"), json!({})).await;
    assert_eq!(started["sandbox"]["status"], "running");
    let (_, activated) = post(&format!("/api/sandbox/{other}/activate"), json!({})).await;
    assert_eq!(activated["active_sandbox_id"], other);
    let (_, stopped) = post(&format!("/api/sandbox/{other}/stop"), json!({})).await;
    assert_eq!(stopped["sandbox"]["status"], "stopped");
    assert_eq!(get("/api/sandbox/target").await, (200, nothing));
    let matched = get("/api/sandbox/target?workspace_id=w").await;
    assert_eq!(matched, target(id, "http://a", "workspace_match"));
    let (_, list) = get("/api/sandbox").await;
    assert_eq!((list[0]["name"].clone(), list[1]["name"].clone()), (json!("one"), json!("two")));
    assert_eq!(get(&format!("/api/sandbox/{id}")).await.1["name"], "one");
    let unknown = (404, json!({ "detail": "sandbox_not_found" }));
    assert_eq!(get("/api/sandbox/none").await, unknown);
    assert_eq!(get("/api/sandbox/target?sandbox_id=none").await, unknown);
    for action in ["activate", "start", "stop"] {
        assert_eq!(post(&format!("/api/sandbox/none/{action}"), json!({})).await, unknown);
    }
    for (body, place) in [
        (json!({ "target_base_url": "x" }), json!(["body", "name"])),
        (json!({ "name": "", "target_base_url": "x" }), json!(["body", "name"])),
        (json!({ "name": "a", "target_base_url": "" }), json!(["body", "target_base_url"])),
        (
            json!({ "name": "a", "target_base_url": "x", "labels": { "k": 1 } }),
            json!(["body", "labels", "k"]),
        ),
    ] {
        let (status, refused) = post("/api/sandbox", body).await;
        assert_eq!((status, &refused["detail"][0]["loc"]), (422, &place));
    }
}

/// Lines of JSON with this id.
fn lines_with(id: &str, text: &str) -> Vec<Value> {
    let with_id = text.lines().filter(|line| line.contains(id));
    with_id.map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn open_chat(world: &World, id: &str) -> http::HeaderMap {
    let url = format!("ws://127.0.0.1:{}/ws/claude-stream", world.address.port());
    let mut request = url.into_client_request().unwrap();
    let token = format!("Bearer {}", world.token);
    request.headers_mut().insert("authorization", token.parse().unwrap());
    request.headers_mut().insert("x-request-id", id.parse().unwrap());
    let (mut socket, accepted) = connect_async(request).await.unwrap();
    while futures_util::StreamExt::next(&mut socket).await.is_some_and(|frame| frame.is_ok()) {}
    accepted.headers().clone()
}

#[tokio::test]
async fn one_id_is_in_the_answer_and_in_the_logs_of_daemon_service_and_runner() {
    let (log, _guard) = capture();
    let place = remote(&[("workspace.chat_command", "true")]).await;
    let world = &place.world;
    let request = world.api.request("GET", "/api/file?path=missing");
    let response = request.header("x-request-id", "follow-1").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-request-id"]),
        (404, &"follow-1".parse().unwrap())
    );
    assert_eq!(open_chat(world, "follow-2").await["x-request-id"], "follow-2");
    wait_for("the runner's word on the command", Duration::from_secs(10), || async {
        place.runner_log().contains("command ended")
    })
    .await
    .unwrap();
    let runner = place.runner_log();
    place.end().await;
    for (id, path) in [("follow-1", "/files"), ("follow-2", "/commands")] {
        let lines = lines_with(id, &log.text());
        let by = |name: &str| {
            let of = |line: &&Value| line["target"].as_str().unwrap().starts_with(name);
            lines.iter().filter(of).cloned().collect::<Vec<Value>>()
        };
        let service = by("sandbank_workspace::service");
        assert!(
            service.iter().any(|line| line["fields"]["request_id"] == id
                && line["fields"]["path"].as_str().is_some_and(|seen| seen.starts_with(path))),
            "{id} at the service: {service:#?}"
        );
        let daemon = by("sandbank_server");
        assert!(daemon.iter().any(|line| line["span"]["request_id"] == id), "{id}: {lines:#?}");
    }
    let said = |id: &str, message: &str| {
        let lines = lines_with(id, &runner);
        let found = lines.iter().find(|line| line["message"] == message).cloned();
        found.unwrap_or_else(|| panic!("{message} for {id}: {runner}"))
    };
    let failed = said("follow-1", "request failed");
    assert_eq!((&failed["code"], &failed["request_id"]), (&json!("not_found"), &json!("follow-1")));
    assert!(failed["route"].as_str().unwrap().starts_with("/files"), "{failed}");
    assert!(!runner.contains("missing"), "names of files are not in the log: {runner}");
    let command = said("follow-2", "command started")["command"].clone();
    let ended = said("follow-2", "command ended");
    assert_eq!((&ended["command"], &ended["ending"]["code"]), (&command, &json!(0)), "{ended}");
}

#[tokio::test]
async fn a_hostile_id_gets_nowhere() {
    let (log, _guard) = capture();
    let place = remote(&[]).await;
    let long = "x".repeat(10_000);
    for hostile in ["forged id", "forged\tid", "{\"forged\":1}", &long] {
        let request = place.world.api.request("GET", "/api/file?path=missing");
        let response = request.header("x-request-id", hostile).send().await.unwrap();
        let given = response.headers()["x-request-id"].to_str().unwrap();
        assert_eq!((response.status().as_u16(), given.len()), (404, 20));
        assert!(place.runner_log().contains(given), "the control: {given} went all the way");
    }
    let (daemon, runner) = (log.text(), place.runner_log());
    place.end().await;
    for text in [&daemon, &runner] {
        let ours = text.lines().filter(|line| !line.contains("\"target\":\"h"));
        for line in ours {
            assert!(!line.contains("forged") && !line.contains(&long), "{line:.300}");
        }
    }
}

#[tokio::test]
async fn the_workspaces_numbers_are_among_the_daemons() {
    let world = unreachable().await;
    assert_eq!(answer(world.api.request("GET", "/api/approval/pending")).await.0, 200);
    assert_eq!(answer(world.api.request("GET", "/api/file")).await.0, 422);
    let metrics = world.api.request("GET", "/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    for line in [
        r#"sandbank_workspace_requests_total{mode="remote",group="look",status="200"} 1"#,
        r#"sandbank_workspace_requests_total{mode="remote",group="look",status="422"} 1"#,
        r#"sandbank_workspace_request_seconds_count{mode="remote",group="look"} 2"#,
        r#"sandbank_ready{check="workspace_service"} 0"#,
        r#"sandbank_ready{check="data_directory"} 1"#,
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_flood_of_one_kind_is_refused_and_the_uis_own_polling_is_not() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    // A minute of the UI's questions with fifty open directories, at once.
    for _ in 0..18 {
        let polls = (0..50).map(|_| world.api.request("GET", "/api/file").send());
        for poll in join_all(polls).await {
            assert_eq!(poll.unwrap().status(), 422);
        }
    }
    let mut refused = None;
    for _ in 0..40 {
        let floods = (0..50).map(|_| world.api.request("GET", "/api/search").send());
        refused =
            join_all(floods).await.into_iter().map(Result::unwrap).find(|r| r.status() == 429);
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("a flood is refused");
    let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(after >= 1);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body, json!({ "detail": "Too many requests of this kind (search)" }));
    assert_eq!(answer(world.api.request("GET", "/api/approval/pending")).await.0, 200);
}
