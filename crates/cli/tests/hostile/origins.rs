//! Web pages: rebinding, cross-site requests and preflights (T60, T61, T62).

use sandbank_test_support::{TestDaemon, skip_unless_root};

use crate::SANDBANK;
use crate::wire::{exchange, port, status};

const ORIGIN: &str = "https://app.example";

#[tokio::test(flavor = "multi_thread")]
async fn only_hosts_that_are_ours_are_answered_even_with_a_token() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let (token, port) = (daemon.token()?, port(&daemon));
    for (host, expected) in [
        ("localhost".to_owned(), 200),
        (format!("localhost:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("LOCALHOST.".to_owned(), 200),
        ("evil.example".to_owned(), 421),
        (format!("evil.example:{port}"), 421),
        ("localhost.evil.example".to_owned(), 421),
        ("127.0.0.1.evil.example".to_owned(), 421),
        ("0.0.0.0".to_owned(), 421),
        ("[::]".to_owned(), 421),
        ("127.1".to_owned(), 421),
        ("2130706433".to_owned(), 421),
        ("0x7f000001".to_owned(), 421),
        ("169.254.169.254".to_owned(), 421),
        (String::new(), 400),
        ("localhost:".to_owned(), 400),
        ("localhost:x".to_owned(), 400),
        ("localhost:99999".to_owned(), 400),
        ("a@localhost".to_owned(), 400),
        ("localhost/..".to_owned(), 400),
        ("localhost, evil.example".to_owned(), 400),
        ("localhost\r\nHost: localhost".to_owned(), 400),
    ] {
        for path in ["/v1/health", "/v1/sandboxes", "/openapi.json"] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            let answer = exchange(&daemon, request.as_bytes()).await;
            assert_eq!(status(&answer), expected, "{host:?} {path}: {answer}");
        }
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_changes_nothing_whatever_it_sends() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_ALLOWED_ORIGINS", ORIGIN)];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let own = daemon.url();
    let own_port = format!("http://localhost:{}", port(&daemon) + 1);
    let pages: [&[(&str, &str)]; 9] = [
        &[("origin", "null")],
        &[("origin", "https://evil.example")],
        &[("origin", "https://app.example.evil")],
        &[("origin", "http://app.example")],
        &[("origin", &own)],
        &[("origin", &own_port)],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
        &[("origin", ORIGIN), ("origin", "https://evil.example")],
    ];
    let http = reqwest::Client::new();
    let body = "{\"sessionKey\":\"page\",\"network\":{\"mode\":\"none\"}}";
    let send = async |headers: &[(&str, &str)], kind: Option<&str>| -> anyhow::Result<_> {
        let mut request = http.post(format!("{own}/v1/sandboxes")).body(body);
        // A page has the user's cookies, and sandboxd's routes need no token here.
        request = request.header("cookie", format!("token={}", daemon.token()?));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        Ok(request.send().await?)
    };
    let simple = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
    for headers in pages {
        for kind in simple.into_iter().map(Some).chain([None, Some("application/json")]) {
            let response = send(headers, kind).await?;
            assert_eq!(response.status(), 403, "{headers:?} {kind:?}");
            assert!(!response.headers().contains_key("access-control-allow-origin"));
        }
    }
    assert!(api.sandboxes().await?.is_empty(), "a page made a sandbox");
    let program = send(&[], Some("text/plain")).await?;
    assert_eq!(program.status(), 200, "a program may");
    let page = send(&[("origin", ORIGIN), ("sec-fetch-site", "cross-site")], None).await?;
    assert_eq!(page.status(), 200, "an allowed page may");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn preflights_allow_only_listed_pages_and_never_credentials() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_ALLOWED_ORIGINS", ORIGIN), ("SANDBANK_LOOPBACK_OPEN", "false")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let http = reqwest::Client::new();
    let preflight = async |origin: &str| {
        http.request(reqwest::Method::OPTIONS, format!("{}/v1/sandboxes", daemon.url()))
            .header("origin", origin)
            .header("access-control-request-method", "DELETE")
            .header("access-control-request-headers", "authorization, x-anything")
            .header("access-control-request-private-network", "true")
            .send()
            .await
    };
    let allowed = preflight(ORIGIN).await?;
    assert_eq!(allowed.status(), 204);
    let headers = allowed.headers();
    assert_eq!(headers["access-control-allow-origin"], ORIGIN);
    assert!(headers.get_all("vary").iter().any(|value| value == "origin"));
    for absent in ["access-control-allow-credentials", "access-control-allow-private-network"] {
        assert!(!headers.contains_key(absent), "{absent}");
    }
    let listed = headers["access-control-allow-headers"].to_str()?;
    assert!(!listed.contains('*') && !listed.contains("x-anything"), "{listed}");
    for origin in ["null", "*", "https://evil.example", "https://app.example.", ""] {
        let refused = preflight(origin).await?;
        assert_eq!(refused.status(), 403, "{origin}");
        assert!(!refused.headers().contains_key("access-control-allow-origin"), "{origin}");
    }
    // A preflight is no way around the token.
    let page = http.get(format!("{}/v1/sandboxes", daemon.url())).header("origin", ORIGIN);
    assert_eq!(page.send().await?.status(), 401);
    daemon.finish().await
}
