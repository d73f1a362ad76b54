//! Who may call what: derived from the document, so that no route is forgotten.

use serde_json::Value;

use crate::world::{World, code, refusal, refused};

/// sandboxd's own routes: without a token on a loopback bind.
const SANDBOXD: &[(&str, &str)] = &[
    ("POST", "/v1/sandboxes"),
    ("POST", "/v1/sandboxes/{id}:stop"),
    ("POST", "/v1/sandboxes/{id}/commands"),
    ("GET", "/v1/sandboxes/{id}/commands/{commandId}/wait"),
    ("GET", "/v1/sandboxes/{id}/commands/{commandId}/logs"),
    ("POST", "/v1/sandboxes/{id}/commands/{commandId}:kill"),
    ("POST", "/v1/sandboxes/{id}/files:write"),
    ("GET", "/v1/sandboxes/{id}/files:read"),
    ("GET", "/v1/sandboxes/{id}/ports/{port}"),
];
/// A page on this machine may chat as it may use sandboxd's routes.
const CHAT: &[(&str, &str)] = &[("POST", "/api/chat"), ("GET", "/api/chat/{id}/stream")];
const PUBLIC: &[(&str, &str)] = &[
    ("GET", "/v1/health"),
    ("GET", "/health"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/__meta/version"),
    ("GET", "/openapi.json"),
];

/// Every documented (method, path), with ids that look real and name nothing.
async fn every_route(world: &World) -> Vec<(String, String, String)> {
    let document: Value =
        world.open("GET", "/openapi.json").send().await.unwrap().json().await.unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let path_id = if path.starts_with("/v1/sessions/") {
                "0123abcd-0ef"
            } else {
                "sbaaaaaaaaaaaaaaaa"
            };
            let url = path
                .replace("{id}", path_id)
                .replace("{commandId}", "c1")
                .replace("{port}", "80")
                .replace("{name}", "nothing");
            routes.push((method.to_uppercase(), path.clone(), url));
        }
    }
    assert!(routes.len() > 52, "only {} routes are documented", routes.len());
    routes
}

fn is_in(list: &[(&str, &str)], method: &str, path: &str) -> bool {
    list.iter().any(|(m, p)| *m == method && *p == path)
}

#[tokio::test]
async fn on_loopback_only_sandboxds_routes_are_open() {
    let world = World::start().await;
    for (method, path, url) in every_route(&world).await {
        let status = world.open(&method, &url).send().await.unwrap().status().as_u16();
        let open = [SANDBOXD, CHAT, PUBLIC].iter().any(|list| is_in(list, &method, &path));
        assert_eq!(status != 401, open, "{method} {path} answered {status}");
    }
}

#[tokio::test]
async fn elsewhere_everything_but_health_and_document_needs_a_token() {
    let world = World::with(&[("server.host", "0.0.0.0")]).await;
    for (method, path, url) in every_route(&world).await {
        let response = world.open(&method, &url).send().await.unwrap();
        let public = is_in(PUBLIC, &method, &path);
        assert_eq!(response.status() != 401, public, "{method} {path}");
    }
    assert_eq!(refused(world.open("GET", "/nothing")).await, code(401, "unauthorized"));
}

#[tokio::test]
async fn the_exception_for_loopback_can_be_switched_off() {
    let world = World::with(&[("auth.loopback_open", "false")]).await;
    let create = || world.open("POST", "/v1/sandboxes").body("{}");
    assert_eq!(refused(create()).await, code(401, "unauthorized"));
    let with_token = create().bearer_auth(&world.token);
    assert_eq!(refused(with_token).await, code(400, "session_key_required"));
}

#[tokio::test]
async fn the_exception_for_loopback_is_only_for_requests_to_a_loopback_host() {
    let names = [("auth.allowed_hosts", "sandbox.example"), ("ports.public_host", "pub.example")];
    let world = World::with(&names).await;
    let create = |host: &str| world.open("POST", "/v1/sandboxes").header("host", host).body("{}");
    for host in ["sandbox.example", "sandbox.example:443", "pub.example"] {
        assert_eq!(refused(create(host)).await, code(401, "unauthorized"), "{host}");
        let with_token = create(host).bearer_auth(&world.token);
        assert_eq!(refused(with_token).await, code(400, "session_key_required"), "{host}");
    }
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]:80"] {
        assert_eq!(refused(create(host)).await, code(400, "session_key_required"), "{host}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_where_none_would_pass() {
    let world = World::start().await;
    let create = || world.open("POST", "/v1/sandboxes").body("{}");
    assert_eq!(refused(create()).await, code(400, "session_key_required"));
    for (name, value) in [
        ("x-remcochat-admin-token", "stale"),
        ("authorization", "Bearer stale"),
        ("authorization", "Bearer"),
        ("authorization", "Basic YTpi"),
        ("authorization", world.token.as_str()),
    ] {
        let answer = create().header(name, value).send().await.unwrap();
        let (status, code, body) = refusal(answer).await;
        assert_eq!((status.as_u16(), code.as_str()), (401, "unauthorized"), "{name}: {value}");
        let hint = body["hint"].as_str().unwrap();
        assert!(hint.contains("SANDBOXD_ADMIN_TOKEN") && hint.contains("`token` file"), "{hint}");
        let shown = hint.contains("`Authorization: Bearer <token>`");
        assert_eq!(shown, !value.ends_with("stale"), "{name}: {value}: {hint}");
    }
    let unset = create().header("x-remcochat-admin-token", "");
    assert_eq!(refused(unset).await, code(400, "session_key_required"));
    let health = world.open("GET", "/v1/health").bearer_auth("stale").send().await.unwrap();
    assert_eq!(health.status(), 200, "health is for everybody");
}

#[tokio::test]
async fn sandboxds_configured_token_is_accepted_beside_the_one_in_the_file() {
    let world = World::with_env(&[("SANDBOXD_ADMIN_TOKEN", " configured\n")]).await;
    for token in ["configured", &world.token] {
        let create = world.open("POST", "/v1/sandboxes").body("{}");
        let create = create.header("x-remcochat-admin-token", token);
        assert_eq!(refused(create).await, code(400, "session_key_required"));
        let list = world.open("GET", "/v1/sandboxes").bearer_auth(token).send().await.unwrap();
        assert_eq!(list.status(), 200);
    }
}

#[tokio::test]
async fn the_api_key_passes_on_the_sessions_routes_and_on_no_other() {
    let world = World::with_env(&[("SANDKASTEN_API_KEY", "sk-key")]).await;
    for (method, path, url) in every_route(&world).await {
        let request = world.open(&method, &url).bearer_auth("sk-key");
        let response = request.send().await.unwrap();
        let ours = ["/v1/sessions", "/v1/workspaces"].iter().any(|root| path.starts_with(root));
        let status = response.status().as_u16();
        if ours || is_in(PUBLIC, &method, &path) {
            assert!(![401, 403].contains(&status), "{method} {path} answered {status}");
            continue;
        }
        assert_eq!(status, 403, "{method} {path}");
        if method != "HEAD" {
            let body = if path.starts_with("/api/") || path.starts_with("/ws/") {
                response.json::<Value>().await.unwrap()
            } else {
                let (_, code, body) = refusal(response).await;
                assert_eq!(code, "scope_too_small", "{method} {path}");
                body
            };
            let said = body["error"].as_str().or(body["detail"].as_str()).unwrap();
            assert!(said.contains("API key") && said.contains("/v1/sessions"), "{body}");
        }
    }
    for (method, path, token, status) in [
        ("GET", "/v1/sessions/x/y/z", "sk-key", 404),
        ("PATCH", "/v1/sessions", "sk-key", 405),
        ("GET", "/v1/nothing", "sk-key", 403),
        ("GET", "/v1/sessions", "sk-kez", 401),
        ("GET", "/v1/tokens", world.token.as_str(), 200),
        ("GET", "/v1/sessions", world.token.as_str(), 200),
    ] {
        let answer = world.open(method, path).bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.status(), status, "{method} {path} {token}");
    }
}

/// Documented reads that need more than looking: they make or open something, or are for admins.
const NO_LOOKING: &[(&str, &str)] = &[
    ("GET", "/v1/sandboxes/{id}/ports/{port}"),
    ("GET", "/v1/sandboxes/{id}/containment"),
    ("GET", "/v1/sandboxes/{id}/commands/{commandId}/attach"),
    ("GET", "/v1/workspaces/{id}/fs"),
    ("GET", "/v1/workspaces/{id}/fs/read"),
    ("GET", "/v1/tokens"),
    ("GET", "/mcp"),
    ("GET", "/api/chat/{id}/stream"),
    // It may open the sandbox ahead of its use.
    ("GET", "/api/tools"),
    ("GET", "/api/tree"),
    ("GET", "/api/file"),
    ("GET", "/api/search"),
    ("GET", "/api/git/status"),
    ("GET", "/api/git/diff"),
    ("GET", "/api/git/show"),
    ("GET", "/api/sessions"),
    ("GET", "/ws/claude-stream"),
    ("GET", "/ws/pty"),
];

/// Looks that need a body.
const LOOKS_BY_POST: &[(&str, &str)] = &[("POST", "/v1/sandboxes/{id}/search:text")];

#[tokio::test]
async fn a_read_only_token_looks_and_makes_nothing() {
    let world = World::start().await;
    let write = serde_json::json!({ "path": "a", "text": "x" });
    let kept = "/v1/workspaces/sbaaaaaaaaaaaaaaaa";
    world.api.call("POST", &format!("{kept}/fs/write"), Some(write)).await.unwrap();
    world.api.delete_all().await.unwrap();
    let mut tokens = Vec::new();
    for scope in ["read_only", "sandbox"] {
        let body = serde_json::json!({ "name": scope, "scope": scope });
        let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    for (method, path, url) in every_route(&world).await {
        let request = world.open(&method, &url).bearer_auth(&tokens[0]);
        let status = request.send().await.unwrap().status().as_u16();
        let reads = ["GET", "HEAD"].contains(&method.as_str());
        let reads = reads || is_in(LOOKS_BY_POST, &method, &path);
        let allowed = reads && !is_in(NO_LOOKING, &method, &path);
        assert_eq!(status != 403, allowed, "{method} {path} answered {status}");
    }
    assert!(world.api.sandboxes().await.unwrap().is_empty(), "a look made a sandbox");
    for route in ["/fs", "/fs/read?path=a"] {
        let look = world.open("GET", &format!("{kept}{route}")).bearer_auth(&tokens[1]);
        assert_eq!(look.send().await.unwrap().status(), 200, "{route}");
    }
}

#[tokio::test]
async fn every_documented_route_is_served_with_a_token() {
    let world = World::start().await;
    for (method, path, url) in every_route(&world).await {
        let request = world.open(&method, &url).bearer_auth(&world.token);
        let response = request.send().await.unwrap();
        let status = response.status();
        assert!(!status.is_server_error(), "{method} {path} answered {status}");
        assert_ne!(status, 401, "{method} {path}");
        if status == 404 && method != "HEAD" {
            let body: Value = response.json().await.unwrap();
            assert_ne!(body["code"], "route_not_found", "{method} {path}");
            assert_ne!(body["details"]["code"], "route_not_found", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_wrong_token_is_as_good_as_none() {
    let world = World::start().await;
    let other = "x".repeat(world.token.len());
    for wrong in ["", "x", &other, &world.token[1..], &format!("{}x", world.token)] {
        let request = world.open("GET", "/v1/sandboxes").header("x-remcochat-admin-token", wrong);
        assert_eq!(refused(request).await, code(401, "unauthorized"), "{wrong:?}");
    }
    let right = world.open("GET", "/v1/sandboxes").header("x-remcochat-admin-token", &world.token);
    assert_eq!(right.send().await.unwrap().status(), 200);
    let basic = world.open("GET", "/v1/sandboxes").basic_auth("admin", Some(&world.token));
    assert_eq!(refused(basic).await, code(401, "unauthorized"));
}

#[tokio::test]
async fn hosts_and_origins_are_checked_on_every_route_even_health() {
    let world = World::start().await;
    for path in ["/v1/health", "/openapi.json", "/v1/sandboxes", "/nothing"] {
        let rebound = world.open("GET", path).header("host", "evil.example:8080");
        assert_eq!(refused(rebound).await, code(421, "host_not_allowed"), "{path}");
        let page = world.open("GET", path).header("origin", "https://evil.example");
        assert_eq!(refused(page).await, code(403, "origin_not_allowed"), "{path}");
        let image = world.open("GET", path).header("sec-fetch-site", "cross-site");
        assert_eq!(refused(image).await, code(403, "origin_not_allowed"), "{path}");
    }
}

#[tokio::test]
async fn a_web_page_cannot_make_a_sandbox_with_a_simple_request() {
    let world = World::start().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let post = world
            .open("POST", "/v1/sandboxes")
            .header("origin", "http://127.0.0.1:3000")
            .header("content-type", kind)
            .body("{\"sessionKey\":\"evil\"}");
        assert_eq!(refused(post).await, code(403, "origin_not_allowed"), "{kind}");
    }
    assert!(world.api.sandboxes().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_allowed_page_may_read_answers_but_never_with_credentials() {
    let origin = "https://app.example";
    let world = World::with(&[("auth.allowed_origins", origin)]).await;
    let preflight = world
        .open("OPTIONS", "/v1/sandboxes")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization");
    let answer = preflight.send().await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(answer.headers()["access-control-allow-origin"], origin);
    assert!(!answer.headers().contains_key("access-control-allow-credentials"));
    let get = world.open("GET", "/v1/health").header("origin", origin).send().await.unwrap();
    assert_eq!(get.headers()["access-control-allow-origin"], origin);
    let other = world
        .open("OPTIONS", "/v1/sandboxes")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    assert_eq!(refused(other).await, code(403, "origin_not_allowed"));
    let none = world.open("GET", "/v1/health").send().await.unwrap();
    assert!(!none.headers().contains_key("access-control-allow-origin"));
}
