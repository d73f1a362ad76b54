//! Sandboxes through the API.

use serde_json::json;

use crate::world::{World, code, refusal, refused};

#[tokio::test]
async fn a_key_names_one_sandbox_until_it_is_stopped() {
    let world = World::start().await;
    let create = || async {
        let body = json!({ "sessionKey": "chat:1", "runtime": "node24", "ports": [3000] });
        let request = world.open("POST", "/v1/sandboxes").json(&body);
        request.send().await.unwrap().json::<serde_json::Value>().await.unwrap()
    };
    let first = create().await;
    assert_eq!(first["created"], true);
    let second = create().await;
    assert_eq!((&second["created"], &second["sandboxId"]), (&json!(false), &first["sandboxId"]));
    let id = first["sandboxId"].as_str().unwrap();
    let stop = format!("/v1/sandboxes/{id}:stop");
    for _ in 0..2 {
        let answer = world.open("POST", &stop).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "{\"ok\":true}");
    }
    assert_ne!(create().await["sandboxId"], first["sandboxId"]);
}

#[tokio::test]
async fn an_engine_is_named_by_those_who_want_it_and_there_or_refused() {
    let world = World::start().await;
    let health = world.api.call("GET", "/v1/health", None).await.unwrap();
    assert_eq!((&health["engine"], &health["engines"]), (&json!("process"), &json!(["process"])));
    let create = |engine: serde_json::Value| {
        let body = json!({ "sessionKey": "chat:1", "engine": engine });
        world.open("POST", "/v1/sandboxes").json(&body).send()
    };
    let (status, code, body) = refusal(create(json!("abacus")).await.unwrap()).await;
    assert_eq!((status.as_u16(), code.as_str()), (400, "engine_not_configured"), "{body}");
    assert!(body["error"].as_str().unwrap().contains("is only process"), "{body}");
    let (status, code, _) = refusal(create(json!(["process"])).await.unwrap()).await;
    assert_eq!((status.as_u16(), code.as_str()), (400, "bad_field"));
    let made: serde_json::Value = create(json!("process")).await.unwrap().json().await.unwrap();
    assert!(made.get("warnings").is_none(), "{made}");
    let path = format!("/v1/sandboxes/{}", made["sandboxId"].as_str().unwrap());
    assert_eq!(world.api.call("GET", &path, None).await.unwrap()["engine"], "process");
}

#[tokio::test]
async fn stopping_nonsense_is_fine_but_using_it_is_not_found() {
    let world = World::start().await;
    for id in ["unknown", "sbaaaaaaaaaaaaaaaa", "..", "%2e%2e", "a%00b"] {
        let stop = world.open("POST", &format!("/v1/sandboxes/{id}:stop"));
        let stopped = stop.send().await.unwrap();
        assert!(matches!(stopped.status().as_u16(), 200 | 404), "{id}");
        let path = format!("/v1/sandboxes/{id}/commands");
        let (status, _, body) = refusal(world.open("POST", &path).send().await.unwrap()).await;
        assert_eq!((status.as_u16(), &body["error"]), (404, &json!("Not found")), "{id}");
    }
    let unknown = world.open("POST", "/v1/sandboxes/sbaaaaaaaaaaaaaaaa/commands");
    let (_, _, body) =
        refusal(unknown.json(&json!({ "argv": ["true"] })).send().await.unwrap()).await;
    assert_eq!(body["code"], "sandbox_not_found");
    assert!(body["hint"].as_str().unwrap().contains("`sandbank ps`"), "{body}");
}

#[tokio::test]
async fn a_stopped_sandbox_is_gone_and_says_why() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.stop(&id).await.unwrap();
    let path = format!("/v1/sandboxes/{id}/files:read?path=/workspace/a");
    let (status, code, body) = refusal(world.open("GET", &path).send().await.unwrap()).await;
    assert_eq!((status.as_u16(), code.as_str()), (404, "gone"));
    assert_eq!(body["details"]["cause"], json!({ "kind": "stopped", "by": "admin" }));
    let path = format!("/v1/sandboxes/{id}/post-mortem");
    let record = world.api.call("GET", &path, None).await.unwrap();
    assert_eq!((&record["id"], &record["cause"]["kind"]), (&json!(id), &json!("stopped")));
}

#[tokio::test]
async fn a_sandbox_can_be_looked_at_paused_and_deleted() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}");
    let info = world.api.call("GET", &path, None).await.unwrap();
    assert_eq!((&info["id"], &info["key"]), (&json!(id), &json!("test")));
    assert_eq!((&info["state"], &info["network"]), (&json!("running"), &json!("none")));
    assert_eq!((&info["image"], &info["limits"]["cpuMillis"]), (&json!("host"), &json!(2000)));
    assert_eq!(info["idleTtlMs"], 900_000);
    let stats = world.api.call("GET", &format!("{path}/stats"), None).await.unwrap();
    assert!(stats["memoryBytes"].as_u64().unwrap() > 0, "{stats}");
    world.api.call("POST", &format!("{path}:pause"), None).await.unwrap();
    let start = world.open("POST", &format!("{path}/commands")).json(&json!({ "argv": ["true"] }));
    assert_eq!(refused(start).await, code(409, "sandbox_paused"));
    world.api.call("POST", &format!("{path}:resume"), None).await.unwrap();
    assert_eq!(world.api.run(&id, "echo on").await.unwrap().1, "on\n");
    world.api.call("DELETE", &path, None).await.unwrap();
    let again = world.open("DELETE", &path).bearer_auth(&world.token);
    assert_eq!(refused(again).await, code(404, "sandbox_not_found"));
}

#[tokio::test]
async fn a_list_right_after_a_command_shows_that_it_has_ended() {
    let world = World::start().await;
    let (id, other) = (world.sandbox().await, world.api.create("other").await.unwrap());
    world.bash(&other, "sleep 600").await;
    for _ in 0..5 {
        assert_eq!(world.api.run(&id, "true").await.unwrap().0, 0);
        let list = world.api.sandboxes().await.unwrap();
        let running = |id: &str| {
            let info = list.iter().find(|info| info["id"] == id).unwrap();
            (info["commandsRunning"].as_u64().unwrap(), info["busy"].as_bool().unwrap())
        };
        assert_eq!((running(&id), running(&other)), ((0, false), (1, true)));
    }
}

#[tokio::test]
async fn bad_bodies_are_the_callers_fault() {
    let world = World::start().await;
    for (body, expected) in [
        ("", "session_key_required"),
        ("[]", "session_key_required"),
        ("{", "bad_json"),
        ("{\"sessionKey\":\"x\",\"image\":\"../x\"}", "invalid_image"),
        ("{\"sessionKey\":\"x\",\"image\":\"missing\"}", "image_not_found"),
        ("{\"sessionKey\":\"x\",\"env\":{\"A\":1}}", "bad_field"),
        ("{\"sessionKey\":\"x\",\"resources\":{\"diskMb\":\"much\"}}", "bad_field"),
        ("{\"sessionKey\":\"x\",\"network\":\"none\"}", "bad_field"),
        ("{\"sessionKey\":\"x\",\"network\":{\"mode\":\"nonsense\"}}", "bad_field"),
        ("{\"sessionKey\":\"x\",\"network\":{\"mod\":\"none\"}}", "bad_field"),
    ] {
        let request = world.open("POST", "/v1/sandboxes").body(body);
        assert_eq!(refused(request).await, code(400, expected), "{body}");
    }
}

#[tokio::test]
async fn at_the_limit_the_answer_is_429_with_a_time() {
    let world = World::with(&[("sandboxes.max", "1")]).await;
    world.sandbox().await;
    let create = world.open("POST", "/v1/sandboxes").json(&json!({ "sessionKey": "other" }));
    let response = create.send().await.unwrap();
    assert!(response.headers().contains_key("retry-after"));
    let (status, code, body) = refusal(response).await;
    assert_eq!(
        (status.as_u16(), code.as_str(), &body["retryable"]),
        (429, "at_limit", &json!(true))
    );
}

#[tokio::test]
async fn a_listed_port_is_published_and_others_are_not_found() {
    let world = World::start().await;
    let body = json!({ "sessionKey": "p", "ports": [3000] });
    let id = world.api.create_with(body).await.unwrap();
    let port = async |port: &str| {
        let path = format!("/v1/sandboxes/{id}/ports/{port}");
        world.open("GET", &path).send().await.unwrap().json::<serde_json::Value>().await.unwrap()
    };
    let found = port("3000").await;
    let host_port = found["hostPort"].as_u64().unwrap();
    assert_eq!(found["url"], format!("http://127.0.0.1:{host_port}"));
    assert_eq!(port("3000").await, found, "the same ever after");
    for other in ["3001", "0", "65536", "99999999999"] {
        assert_eq!(port(other).await, json!({ "found": false }), "{other}");
    }
    assert_eq!(port("x").await["error"], "Not found");
    let list = world.api.call("GET", &format!("/v1/sandboxes/{id}/ports"), None).await.unwrap();
    assert_eq!((&list["allowed"], &list["published"][0]["port"]), (&json!([3000]), &json!(3000)));
    let path = format!("/v1/sandboxes/{id}/ports/3000");
    world.api.call("DELETE", &path, None).await.unwrap();
    let unknown = world.open("GET", "/v1/sandboxes/sbaaaaaaaaaaaaaaaa/ports/0");
    assert_eq!(refused(unknown).await, code(404, "sandbox_not_found"));
}

#[tokio::test]
async fn fields_that_have_no_effect_are_told_of_with_the_ones_that_were_meant() {
    let world = World::start().await;
    let create = async |body: serde_json::Value| {
        let answer = world.open("POST", "/v1/sandboxes").json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{body}");
        answer.json::<serde_json::Value>().await.unwrap()
    };
    let usual = json!({
        "sessionKey": "chat:1", "idleTtlMs": 900_000, "ports": [3000],
        "resources": { "vcpus": 2, "memoryMb": 512 }, "network": { "mode": "default" },
    });
    for _ in 0..2 {
        assert!(
            create(usual.clone()).await.get("warnings").is_none(),
            "what sandboxd's client sends"
        );
    }
    let slips = json!({ "sessionKey": "chat:2", "memoryMb": 512, "resources": { "memory": 1 }, "colour": 1 });
    let warnings = create(slips).await["warnings"].clone();
    let says = |place: usize| warnings[place].as_str().unwrap();
    assert!(says(0).starts_with("colour is not a field here; the fields are sessionKey, "));
    assert_eq!(says(1), "memoryMb is not a field here; did you mean resources.memoryMb?");
    assert_eq!(says(2), "resources.memory is not a field here; did you mean resources.memoryMb?");
    assert_eq!(warnings.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_runtime_without_an_image_of_its_name_is_told_of_with_what_was_taken() {
    let world = World::start().await;
    let create = async |key: &str, mut body: serde_json::Value| {
        body["sessionKey"] = json!(key);
        let answer = world.open("POST", "/v1/sandboxes").json(&body).send().await.unwrap();
        answer.json::<serde_json::Value>().await.unwrap()["warnings"].clone()
    };
    let told = json!([
        "runtime: there is no image python3.13, so this is host: `make images` makes it, and \
         `sandbank image import python3.13 FILE` takes one"
    ]);
    assert_eq!(create("chat:1", json!({ "runtime": "python3.13" })).await, told);
    let both = json!({ "runtime": "python3.13", "image": "host" });
    assert!(create("chat:2", both).await.is_null(), "the image was chosen");
    assert!(create("chat:3", json!({})).await.is_null(), "no runtime was asked for");
}

#[tokio::test]
async fn values_that_were_clamped_or_dropped_are_told_of() {
    let world = World::start().await;
    let asked = json!({
        "sessionKey": "chat:1", "idleTtlMs": 5, "runtime": "node22", "ports": [3000, 0, 3000, "4000.5"],
        "resources": { "vcpus": 64, "memoryMb": 512.7 },
    });
    let answer = world.open("POST", "/v1/sandboxes").json(&asked).send().await.unwrap();
    let answer: serde_json::Value = answer.json().await.unwrap();
    let expected = json!([
        "idleTtlMs: 10000 was taken, which is what its range allows",
        "resources.vcpus: 8 was taken, which is what its range allows",
        "runtime: node24 was taken, of node24 and python3.13",
        "ports: 1 of them cannot be published; a sandbox has at most 4, from 1 to 65535",
    ]);
    assert_eq!(answer["warnings"], expected);
}

#[tokio::test]
async fn what_a_found_sandbox_has_otherwise_is_told_and_not_changed() {
    let world = World::start().await;
    let create = async |mut body: serde_json::Value| {
        body["sessionKey"] = json!("chat:1");
        let answer = world.open("POST", "/v1/sandboxes").json(&body).send().await.unwrap();
        answer.json::<serde_json::Value>().await.unwrap()
    };
    let asked =
        json!({ "network": { "mode": "none" }, "resources": { "memoryMb": 512, "pids": 100 } });
    let id = create(asked.clone()).await["sandboxId"].as_str().unwrap().to_owned();
    assert!(create(asked).await.get("warnings").is_none());
    assert!(create(json!({})).await.get("warnings").is_none(), "nothing was asked for");
    let other = json!({
        "network": { "mode": "default" }, "image": "other", "runtime": "python3.13",
        "resources": { "memoryMb": 1024, "pids": 100, "vcpus": 8 },
    });
    let answer = create(other).await;
    assert_eq!((&answer["sandboxId"], &answer["created"]), (&json!(id), &json!(false)));
    let warnings: Vec<_> = answer["warnings"].as_array().unwrap().iter().collect();
    let expected = [
        ("network", "none"),
        ("image", "host"),
        ("runtime", "node24"),
        ("resources.vcpus", "2"),
        ("resources.memoryMb", "512"),
    ];
    assert_eq!(warnings.len(), expected.len(), "{answer}");
    for (warning, (field, has)) in warnings.into_iter().zip(expected) {
        let text = format!(
            "{field}: this sandbox, which was there already, has {has}; it was not changed"
        );
        assert_eq!(warning, &json!(text));
    }
    let info = world.api.call("GET", &format!("/v1/sandboxes/{id}"), None).await.unwrap();
    assert_eq!(
        (&info["network"], &info["limits"]["memoryBytes"]),
        (&json!("none"), &json!(512 << 20))
    );
}

/// The order that sandboxd's clients know: the public host, a publish address that is one, the
/// host by which the caller came.
#[tokio::test]
async fn the_url_of_a_port_has_the_best_host_that_is_known() {
    type Variable = (&'static str, &'static str);
    const ANYWHERE: Variable = ("SANDBOXD_PUBLISH_HOST_IP", "0.0.0.0");
    const BEHIND: Variable = ("SANDBANK_PORT_LISTEN_ADDRESS", "0.0.0.0");
    let rows: &[(&[Variable], &str, &str)] = &[
        (&[], "localhost", "http://127.0.0.1"),
        (&[ANYWHERE], "localhost:9", "http://localhost"),
        (&[ANYWHERE], "[::1]:9", "http://[::1]"),
        (&[("SANDBOXD_BIND_HOST", "0.0.0.0")], "127.0.0.9", "http://127.0.0.9"),
        (&[("SANDBOXD_PUBLISH_HOST_IP", "127.0.0.2")], "localhost", "http://127.0.0.2"),
        (&[("SANDBOXD_PUBLISH_HOST_IP", "192.0.2.1"), BEHIND], "localhost", "http://192.0.2.1"),
        (&[ANYWHERE, BEHIND, ("SANDBANK_ALLOWED_HOSTS", "boxes")], "boxes:80", "http://boxes"),
        (&[("SANDBOXD_PUBLIC_HOST", "a.example")], "localhost", "http://a.example"),
        (&[("SANDBOXD_PUBLIC_HOST", "a.example"), ANYWHERE], "localhost", "http://a.example"),
        (&[("SANDBOXD_PUBLIC_HOST", "fd00::1")], "localhost", "http://[fd00::1]"),
        (&[("SANDBOXD_PUBLIC_PROTO", "https")], "localhost", "https://127.0.0.1"),
    ];
    for (env, host, expected) in rows {
        let world = World::with_env(env).await;
        let body = json!({ "sessionKey": "p", "ports": [3000] });
        let id = world.api.create_with(body).await.unwrap();
        let request = world.open("GET", &format!("/v1/sandboxes/{id}/ports/3000"));
        let request = request.bearer_auth(&world.token).header("host", *host);
        let found: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
        let url = format!("{expected}:{}", found["hostPort"]);
        assert_eq!(found["url"], url, "{env:?}, asked as {host}");
    }
}

#[tokio::test]
async fn a_full_range_of_ports_is_429_and_names_the_setting() {
    let port = sandbank_test_support::free_port().unwrap();
    let range = format!("{port}-{port}");
    let world = World::with(&[("ports.range", &range)]).await;
    let body = json!({ "sessionKey": "p", "ports": [3000, 3001] });
    let id = world.api.create_with(body).await.unwrap();
    let path = |inside: u16| format!("/v1/sandboxes/{id}/ports/{inside}");
    let found = world.api.call("GET", &path(3000), None).await.unwrap();
    assert_eq!(found["hostPort"], port);
    let response = world.open("GET", &path(3001)).send().await.unwrap();
    assert!(response.headers().contains_key("retry-after"));
    let (status, code, body) = refusal(response).await;
    assert_eq!((status.as_u16(), code.as_str()), (429, "no_host_port"));
    let said = body["error"].as_str().unwrap();
    assert!(said.contains("ports.range") && said.contains(&range), "{body}");
    assert!(body["hint"].as_str().unwrap().contains("SANDBANK_PORT_RANGE"), "{body}");
}
