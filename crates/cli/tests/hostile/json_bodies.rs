//! JSON that is none, or too much, or of another type, on every route that takes any (T64).

use std::time::Duration;

use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use crate::SANDBANK;
use crate::routes::{self, Route};
use crate::wire::envelope;

/// Texts that are no JSON document, or none that a reader may guess about.
fn broken() -> Vec<(&'static str, Vec<u8>)> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    let mut cases = vec![
        text("an open object", "{"),
        text("an open array", "["),
        text("an open text", "{\"a"),
        text("an open escape", "{\"a\\"),
        text("a closing bracket", "}"),
        text("crossed brackets", "{[}]"),
        text("no value", "{\"a\":}"),
        text("no colon", "{\"a\" 1}"),
        text("two colons", "{\"a\"::1}"),
        text("no comma", "{\"a\":1 \"b\":2}"),
        text("a comma too many", "{\"a\":1,}"),
        text("a comma first", "{,\"a\":1}"),
        text("a bare key", "{a:1}"),
        text("a number as key", "{1:1}"),
        text("single quotes", "{'a':1}"),
        text("a comment", "{/*x*/}"),
        text("a line comment", "{}//x"),
        text("two documents", "{}{}"),
        text("something behind", "{} x"),
        text("a closing bracket behind", "{}]"),
        text("NaN", "{\"a\":NaN}"),
        text("Infinity", "{\"a\":-Infinity}"),
        text("a word", "{\"a\":undefined}"),
        text("TRUE", "{\"a\":TRUE}"),
        text("half a word", "{\"a\":tru}"),
        text("a leading zero", "{\"a\":012}"),
        text("a leading plus", "{\"a\":+1}"),
        text("a leading point", "{\"a\":.5}"),
        text("a trailing point", "{\"a\":5.}"),
        text("no exponent", "{\"a\":1e}"),
        text("two minus", "{\"a\":--1}"),
        text("hexadecimal", "{\"a\":0x10}"),
        text("1e999", "{\"a\":1e999}"),
        text("-1e999", "{\"a\":-1e999}"),
        text("a raw line end in a text", "{\"a\":\"\n\"}"),
        text("a raw tab in a text", "{\"a\":\"\t\"}"),
        text("an unknown escape", "{\"a\":\"\\x41\"}"),
        text("a short escape", "{\"a\":\"\\u12\"}"),
        text("a lone surrogate", "{\"a\":\"\\ud800\"}"),
        text("swapped surrogates", "{\"a\":\"\\udc00\\ud800\"}"),
        text("a byte order mark", "\u{feff}{}"),
        text("a form feed", "\u{c}{}"),
        text("a space that is none", "\u{a0}{}"),
        text(
            "the same key twice",
            "{\"path\":\"a\",\"path\":\"b\",\"sessionKey\":\"a\",\"sessionKey\":\"b\",\"name\":\"a\",\"name\":\"b\",\"rows\":1,\"rows\":2,\"signal\":1,\"signal\":2,\"from\":\"a\",\"from\":\"b\",\"cmd\":\"bash\",\"cmd\":\"sh\",\"files\":[],\"files\":[]}",
        ),
        ("a NUL", b"{}\0".to_vec()),
        ("only NULs", vec![0; 64]),
        ("a byte that is no UTF-8", b"{\"a\":\"\xff\"}".to_vec()),
        ("an overlong character", b"{\"a\":\"\xc0\xaf\"}".to_vec()),
        ("a surrogate in UTF-8", b"{\"a\":\"\xed\xa0\x80\"}".to_vec()),
        ("a cut character", b"{\"a\":\"\xe2\x82\"}".to_vec()),
        ("UTF-16", "{}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ];
    cases.push(("100 000 open arrays", vec![b'['; 100_000]));
    cases.push(("100 000 open objects", b"{\"a\":".repeat(100_000)));
    let deep = [&b"{\"a\":"[..], &b"[".repeat(50_000), &b"]".repeat(50_000), b"}"].concat();
    cases.push(("100 000 brackets that match", deep));
    cases
}

/// Documents that are JSON and not what any route takes.
fn senseless() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!([[]]),
        json!({"": ""}),
    ]
}

/// What a field may be given instead of what it takes.
fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("\u{0}"),
        json!("x".repeat(5000)),
        json!([]),
        json!([null, {}]),
        json!({}),
        json!({ "a": { "b": [] } }),
    ]
}

async fn answer(api: &Api, route: &Route, url: &str, body: Vec<u8>) -> (u16, String) {
    let request = api.request(&route.method, url).header("content-type", "application/json");
    let request = request.body(body).timeout(Duration::from_secs(30));
    let response = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    if status >= 400 {
        envelope(&text);
    }
    (status, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_the_callers_error_on_every_route() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("json").await?;
    let command = api.bash(&id, "true").await?;
    api.wait(&id, &command).await?;
    let routes = routes::all(&api).await?;
    let with_body: Vec<&Route> = routes.iter().filter(|route| route.body.is_some()).collect();
    assert!(with_body.len() >= 8, "{with_body:?}");
    for route in with_body {
        let url = route.url(&id, &command);
        for (what, bytes) in broken() {
            let (status, text) = answer(&api, route, &url, bytes).await;
            assert_eq!(status, 400, "{what} to {url}: {text}");
            let code = envelope(&text)["code"].clone();
            assert!(
                ["bad_json", "bad_body", "files_required"].contains(&code.as_str().unwrap()),
                "{what}: {text}"
            );
        }
        for value in senseless() {
            let (status, text) = answer(&api, route, &url, value.to_string().into()).await;
            assert!((400..500).contains(&status), "{value} to {url}: {status} {text}");
        }
    }
    daemon.finish().await
}

/// A body that each route accepts, or refuses only for what it names.
fn honest(route: &Route) -> Value {
    if route.path == "/api/tools/approvals/{id}" {
        return json!({ "decision": "deny", "digest": "" });
    }
    match route.path.rsplit('/').next().unwrap() {
        "sandboxes" => json!({ "sessionKey": "json", "network": { "mode": "none" } }),
        "commands" => json!({ "argv": ["true"] }),
        "files:write" => json!({ "files": [{ "path": "/workspace/f", "contentBase64": "" }] }),
        "files:mkdir" => json!({ "path": "d", "parents": true }),
        "files:move" => json!({ "from": "f", "to": "f", "overwrite": true }),
        "files:copy" => json!({ "from": "f", "to": "g", "overwrite": true }),
        "files:chmod" => json!({ "path": "f", "mode": "0644" }),
        "search:text" => json!({ "pattern": "x" }),
        "git:stage" | "git:unstage" => json!({ "paths": ["f"] }),
        "git:commit" => json!({ "message": "m" }),
        "git:checkout" => json!({ "branch": "b" }),
        "signal" => json!({ "signal": "TERM" }),
        "resize" => json!({ "rows": 24, "cols": 80 }),
        "sessions" => json!({}),
        "exec" | "stream" => json!({ "cmd": "true" }),
        "write" => json!({ "path": "f", "text": "" }),
        "tokens" => json!({ "name": "t", "scope": "read_only" }),
        "images:import" => json!({ "name": "i", "path": "/nothing.tar" }),
        // Refused for its name as for its reference, so that no odd one of either asks a registry.
        "images:pull" => json!({ "name": "host", "reference": "../nothing" }),
        other => panic!("no body is known for {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_every_wrong_type_and_unknown_ones_never_make_a_server_error()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("json").await?;
    let command = api.bash(&id, "true").await?;
    api.wait(&id, &command).await?;
    let mut tried = 0;
    for route in routes::all(&api).await?.iter().filter(|route| route.body.is_some()) {
        let url = route.url(&id, &command);
        let body = honest(route);
        let mut unknown = body.clone();
        unknown["unknown"] = json!({ "deep": [1, 2, 3] });
        let (plain, _) = answer(&api, route, &url, body.to_string().into()).await;
        let (with_unknown, text) = answer(&api, route, &url, unknown.to_string().into()).await;
        // sandboxd passes over what it does not know; our own routes and the sessions' say so.
        let is_sandboxds =
            ["/sandboxes", "/commands", "/files:write"].iter().any(|end| route.path.ends_with(end));
        let expected = if is_sandboxds { plain } else { 400 };
        assert_eq!(with_unknown, expected, "{url}: {plain}, then {with_unknown} {text}");
        assert!(is_sandboxds || text.contains("unknown is not a field here"), "{url}: {text}");
        let fields = route.body.as_ref().unwrap()["properties"].as_object().unwrap().clone();
        for (field, value) in
            fields.keys().flat_map(|field| odd_values().into_iter().map(move |odd| (field, odd)))
        {
            let mut body = body.clone();
            body[field] = value.clone();
            let (status, text) = answer(&api, route, &url, body.to_string().into()).await;
            assert!(status < 500, "{field}={value} to {url}: {status} {text}");
            tried += 1;
        }
    }
    assert!(tried > 300, "only {tried} bodies were tried");
    let (code, text, _) = api.run(&id, "echo alive").await?;
    assert_eq!((code, text.as_str()), (0, "alive\n"));
    daemon.finish().await
}

/// Limits at their ends are the caller's business: a sandbox, or a clear refusal.
#[tokio::test(flavor = "multi_thread")]
async fn extreme_limits_make_a_sandbox_or_a_refusal() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let extremes = [0, 1, u64::from(u32::MAX), u64::MAX];
    let mut bodies = vec![json!({ "image": "none/such:tag" }), json!({ "image": "../x" })];
    for field in ["vcpus", "memoryMb", "diskMb", "pids", "tmpMb"] {
        bodies.extend(extremes.map(|value| json!({ "resources": { field: value } })));
    }
    for field in ["idleTtlMs", "maxLifetimeMs"] {
        bodies.extend(extremes.map(|value| json!({ field: value })));
    }
    for (number, mut body) in bodies.into_iter().enumerate() {
        body["sessionKey"] = json!(format!("extreme:{number}"));
        body["network"] = json!({ "mode": "none" });
        let (status, answer) = api.try_call("POST", "/v1/sandboxes", Some(body.clone())).await?;
        // A quota that nothing enforces is refused by the control's name.
        let is_clear = status < 500 || answer["code"] == "control_unavailable";
        assert!(is_clear, "{body}: {status} {answer}");
        if let Some(id) = answer["sandboxId"].as_str() {
            api.stop(id).await?;
        } else {
            envelope(&answer.to_string());
        }
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_above_the_limit_is_413_in_flat_memory() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let before = resident_kib(daemon.pid().unwrap());
    let chunk = vec![b' '; 1 << 20];
    for stated in [true, false] {
        let chunk = chunk.clone();
        let pieces = futures_util::stream::iter(
            (0..100).map(move |_| Ok::<_, std::io::Error>(chunk.clone())),
        );
        let mut request =
            api.request("POST", "/v1/sandboxes").body(reqwest::Body::wrap_stream(pieces));
        if stated {
            request = request.header("content-length", (100 << 20).to_string());
        }
        let response = request.send().await?;
        assert_eq!(response.status(), 413, "stated: {stated}");
        assert_eq!(envelope(&response.text().await?)["code"], "body_too_large");
    }
    let grown = resident_kib(daemon.pid().unwrap()).saturating_sub(before);
    assert!(grown < 120 << 10, "the daemon grew by {grown} KiB");
    daemon.finish().await
}

pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
