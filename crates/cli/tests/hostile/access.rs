//! Tokens that are missing, malformed, revoked, or too small, on every route (T58, T59).

use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::json;

use crate::SANDBANK;
use crate::routes::{self, Route};
use crate::wire::envelope;

const NOBODY: &str = "sbaaaaaaaaaaaaaaaa";

/// Without any token, whoever asks.
fn is_public(route: &Route) -> bool {
    ["/v1/health", "/health", "/healthz", "/readyz", "/__meta/version", "/openapi.json"]
        .contains(&route.path.as_str())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    ReadOnly,
    Sandbox,
    Admin,
}

const SCOPES: [(Scope, &str); 3] =
    [(Scope::ReadOnly, "read_only"), (Scope::Sandbox, "sandbox"), (Scope::Admin, "admin")];

/// What a route needs, by what it does: looking is for readers, except at what only an
/// administrator may see, and one GET opens a port.
fn needed(route: &Route) -> Scope {
    // These look, but by doing something in the sandbox.
    let acts = [
        "/v1/sandboxes/{id}/ports/{port}",
        "/v1/sandboxes/{id}/containment",
        "/v1/sandboxes/{id}/commands/{commandId}/attach",
        // Through a sandbox that is made for it.
        "/v1/workspaces/{id}/fs",
        "/v1/workspaces/{id}/fs/read",
        "/api/tree",
        "/api/file",
        "/api/search",
        "/api/git/status",
        "/api/git/diff",
        "/api/git/show",
        "/api/sessions",
        "/ws/claude-stream",
        "/ws/pty",
        // The gate of the tools is asked as for a call.
        "/api/tools",
        // What a model says belongs to who asked it.
        "/api/chat/{id}/stream",
        "/mcp",
    ];
    // A search needs a body.
    let looks = ["GET", "HEAD"].contains(&route.method.as_str())
        || route.is("POST", "/v1/sandboxes/{id}/search:text");
    let images = route.path.starts_with("/v1/images") && !looks;
    // Whoever calls the tools is not who allows it.
    let decides = route.is("POST", "/api/tools/approvals/{id}");
    if images || decides || route.path.starts_with("/v1/tokens") {
        Scope::Admin
    } else if looks && !acts.iter().any(|path| route.is("GET", path)) {
        Scope::ReadOnly
    } else {
        Scope::Sandbox
    }
}

async fn status(
    http: &reqwest::Client,
    daemon: &TestDaemon,
    route: &Route,
    headers: &[(&str, &str)],
) -> anyhow::Result<(u16, String)> {
    let url = format!("{}{}", daemon.url(), route.url(NOBODY, "c1"));
    let mut request = http.request(route.method.parse()?, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    // Of an answer that is let through there may be no end: one is the stream of events.
    let text = if status < 400 { String::new() } else { response.text().await? };
    Ok((status, text))
}

async fn make(api: &Api, name: &str, scope: &str) -> anyhow::Result<String> {
    let body = json!({ "name": name, "scope": scope });
    let made = api.call("POST", "/v1/tokens", Some(body)).await?;
    Ok(made["token"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_good_token_every_route_but_the_public_ones_is_401_and_tells_nothing()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start_with(SANDBANK, &[("SANDBANK_LOOPBACK_OPEN", "false")]).await?;
    let api = daemon.api()?;
    let revoked = make(&api, "revoked", "admin").await?;
    api.call("DELETE", "/v1/tokens/revoked", None).await?;
    let token = daemon.token()?;
    let (admin, bearer) = ("x-remcochat-admin-token", "authorization");
    let other = "x".repeat(token.len());
    let (cut, longer, revoked) =
        (token[1..].to_owned(), format!("{token}x"), format!("Bearer {revoked}"));
    let (basic, twice) = (format!("Basic {token}"), format!("Bearer {token} {token}"));
    let bare = token.clone();
    let upper = format!("Bearer {}", token.to_uppercase());
    let good = format!("Bearer {token}");
    let cookie = format!("token={token}; authorization=Bearer {token}");
    let wrong: [&[(&str, &str)]; 14] = [
        &[],
        &[(admin, "")],
        &[(bearer, "Bearer")],
        &[(bearer, "Bearer ")],
        &[(bearer, &bare)],
        &[(bearer, &basic)],
        &[(bearer, &twice)],
        &[(bearer, &upper)],
        &[(bearer, &revoked)],
        &[(admin, &other)],
        &[(admin, &cut)],
        &[(admin, &longer)],
        // The second header does not mend the first.
        &[(admin, "wrong"), (bearer, &good)],
        &[("cookie", &cookie)],
    ];
    let http = reqwest::Client::new();
    let routes = routes::all(&api).await?;
    for route in &routes {
        for headers in wrong {
            let (status, text) = status(&http, &daemon, route, headers).await?;
            if is_public(route) {
                // It is switched off.
                let expected = if route.path == "/health" { 404 } else { 200 };
                assert_eq!(status, expected, "{route:?} with {headers:?}");
                continue;
            }
            assert_eq!(status, 401, "{route:?} with {headers:?}: {text}");
            if route.method != "HEAD" {
                let body = envelope(&text);
                assert_eq!(body["code"], "unauthorized");
                assert!(!text.contains(&token) && body["details"].is_null(), "{text}");
            }
        }
        let (right, text) = status(&http, &daemon, route, &[(bearer, &good)]).await?;
        assert!(![401, 403].contains(&right), "the right token is refused: {route:?} {text}");
    }
    let health = http.get(format!("{}/v1/health", daemon.url())).send().await?.text().await?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    assert!(!health.contains(kernel.trim()), "everybody is told the kernel: {health}");
    // What is no route looks like one that is not for you.
    let nothing = http.get(format!("{}/nothing", daemon.url())).send().await?;
    assert_eq!(nothing.status(), 401);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_opens_exactly_its_routes() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let http = reqwest::Client::new();
    let routes = routes::all(&api).await?;
    for (scope, name) in SCOPES {
        let token = format!("Bearer {}", make(&api, name, name).await?);
        for route in routes.iter().filter(|route| !is_public(route)) {
            // What they would change is not there.
            let (status, text) =
                status(&http, &daemon, route, &[("authorization", &token)]).await?;
            let expected = scope >= needed(route);
            assert_eq!(status != 403, expected, "{name} on {route:?}: {status} {text}");
            assert_ne!(status, 401, "{name} on {route:?}");
        }
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_admin_token_ends_the_old_one_with_the_restart_and_a_revoked_one_at_once()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let (old, api) = (daemon.token()?, daemon.api()?);
    let short = Api::new(daemon.url(), make(&api, "short", "sandbox").await?);
    assert_eq!(short.try_call("GET", "/v1/sandboxes", None).await?.0, 200);
    api.call("DELETE", "/v1/tokens/short", None).await?;
    assert_eq!(short.try_call("GET", "/v1/sandboxes", None).await?.0, 401);
    daemon.terminate().await?;
    std::fs::remove_file(daemon.data_dir().join("token"))?;
    daemon.launch().await?;
    assert_ne!(daemon.token()?, old);
    assert_eq!(api.try_call("GET", "/v1/sandboxes", None).await?.0, 401, "the old one");
    assert_eq!(daemon.api()?.try_call("GET", "/v1/sandboxes", None).await?.0, 200, "the new one");
    assert_eq!(short.try_call("GET", "/v1/sandboxes", None).await?.0, 401, "still revoked");
    daemon.finish().await
}
