//! `sandbank serve` over a workspace service: one that refuses is a refusal to start, one that is
//! away is waited for.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbank_test_support::{TestDaemon, skip_unless_root, wait_for};
use serde_json::json;
use tokio::net::TcpListener;

use super::service::Service;
use super::{LIMIT, SANDBANK};

const URL: &str = "SANDBANK_WORKSPACE_SERVICE_URL";
const SECRET_FILE: &str = "SANDBANK_WORKSPACE_SERVICE_SECRET_FILE";

fn serve(daemon: &TestDaemon, arguments: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    // One that starts nevertheless is ended.
    let output = Command::new("timeout")
        .args(["60", SANDBANK, "serve"])
        .args(arguments)
        .env("SANDBANK_DATA_DIR", daemon.data_dir())
        .env("SANDBOXD_PORT", daemon.url().rsplit(':').next().unwrap())
        .envs(daemon.settings())
        .stdin(Stdio::null())
        .output()?;
    Ok((output.status.code(), String::from_utf8(output.stderr)?))
}

/// The one line of a daemon that does not start.
pub(crate) fn refused_start(daemon: &TestDaemon) -> anyhow::Result<String> {
    let (code, said) = serve(daemon, &[])?;
    anyhow::ensure!(code.is_some_and(|code| code != 0), "it ended with {code:?}: {said}");
    let mut errors = said.lines().filter(|line| line.starts_with("error: "));
    let line = errors.next().unwrap_or_default().to_owned();
    anyhow::ensure!(
        errors.next().is_none() && !said.contains("hint: "),
        "more than a line: {said}"
    );
    Ok(line)
}

/// Answers everything as something that is not ours would, or a later version of us.
async fn stranger(status: u16, version: Option<&'static str>) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = service_fn(move |_: Request<Incoming>| async move {
                let answer = Response::builder().status(status);
                let answer = version
                    .into_iter()
                    .fold(answer, |answer, known| answer.header("x-workspace-api-version", known));
                Ok::<_, Infallible>(answer.body(Full::new(Bytes::from_static(b"{}"))).unwrap())
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), answer));
        }
    });
    Ok(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_refuses_is_a_refusal_to_start_in_one_line_with_the_fix()
-> anyhow::Result<()> {
    let service = Service::start().await;
    let url = format!("http://127.0.0.1:{}", service.port);
    let secret = service.path("secret").to_str().unwrap().to_owned();
    fs::write(service.path("other"), "x".repeat(40))?;
    fs::set_permissions(service.path("other"), PermissionsExt::from_mode(0o600))?;
    let other = service.path("other").to_str().unwrap().to_owned();
    for (url, secret, code, begin, fix) in [
        (url.clone(), &other, 77, format!("{SECRET_FILE}: auth: "), "the same secret"),
        (format!("{url}/below"), &secret, 64, format!("{URL}: bad_path: "), "host, port and path"),
        (stranger(404, None).await?, &secret, 64, format!("{URL}: bad_path: "), "its host, port"),
        (stranger(401, None).await?, &secret, 77, format!("{SECRET_FILE}: auth: "), "same secret"),
        (
            stranger(200, Some("9.0.0")).await?,
            &secret,
            78,
            format!("{URL}: version: "),
            "the same version of sandbank",
        ),
    ] {
        let settings = [("WORKSPACE_MODE", "remote"), (URL, &url), (SECRET_FILE, secret)];
        let daemon = TestDaemon::prepare(SANDBANK, &settings)?;
        let said = refused_start(&daemon)?;
        assert!(said.starts_with(&format!("error: {begin}")) && said.contains(fix), "{said}");
        assert!(!said.contains("xxx"), "a secret is shown: {said}");
        assert!(!daemon.data_dir().join("sandbank.db").exists(), "something was made: {said}");
        assert_eq!(serve(&daemon, &[])?.0, Some(code), "{said}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_away_is_told_of_and_waited_for() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut service = Service::prepare();
    let url = format!("http://127.0.0.1:{}", service.port);
    let secret = service.path("secret").to_str().unwrap().to_owned();
    let settings = [("WORKSPACE_MODE", "remote"), (URL, &url), (SECRET_FILE, &secret)];
    let mut daemon = TestDaemon::prepare(SANDBANK, &settings)?;
    let (code, said) = serve(&daemon, &["--check"])?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("{URL}: unreachable: ")), "{said}");
    daemon.launch().await?;
    let api = daemon.api()?;
    let (status, ready) = api.try_call("GET", "/readyz", None).await?;
    let said = ready["checks"]["workspace_service"]["message"].as_str().unwrap();
    assert_eq!(status, 503, "{ready}");
    assert!(said.starts_with("unreachable: ") || said.starts_with("breaker_open: "), "{said}");
    let log = fs::read_to_string(daemon.log_path())?;
    let told = log.lines().find(|line| line.contains(&format!("{URL}: unreachable: ")));
    let told = told.unwrap_or_else(|| panic!("it is not told: {log}"));
    for word in ["WARN", "look whether the workspace service runs", "/readyz is 503"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    service.launch().await;
    let is_ready = || async { matches!(api.try_call("GET", "/readyz", None).await, Ok((200, _))) };
    wait_for("the service is found", LIMIT * 2, is_ready).await?;
    let body = json!({ "content": "here" });
    api.call("PUT", "/api/file?path=a", Some(body)).await?;
    assert_eq!(fs::read_to_string(service.path("root/a"))?, "here");
    // Once it is there, a start is without a word.
    let (code, said) = serve(&daemon, &["--check"])?;
    assert!(code == Some(0) && !said.contains(URL), "{said}");
    daemon.finish().await
}
