//! A workspace service that speaks TLS, and whom its control plane believes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use sandbank_test_support::{TestDaemon, find_program, skip_unless_root, wait_for};
use sandbank_workspace::{KeyFile, Place, PlaceCalls, PlaceErrorKind, RemotePlace, RemoteSettings};

use super::service::Service;
use super::start::refused_start;
use super::{LIMIT, SANDBANK};

/// An authority and a certificate for 127.0.0.1.
fn certificates(directory: &Path) {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key \
        -out ca.pem -days 2 -subj /CN=test && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
        -nodes -keyout own.key -out own.csr -subj /CN=own && printf \
        'subjectAltName=IP:127.0.0.1\\nbasicConstraints=CA:FALSE\\n' >own.ext && openssl x509 -req -in own.csr \
        -CA ca.pem -CAkey ca.key -CAcreateserial -out own.pem -days 2 -extfile own.ext";
    let made = Command::new("sh").args(["-c", script]).current_dir(directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_only_a_service_that_the_authority_vouches_for_is_believed() {
    if find_program("openssl").is_none() {
        println!("skipped: there is no openssl to make certificates with");
        return;
    }
    let mut service = Service::prepare();
    certificates(service.directory.path());
    let file = |name: &str| service.path(name).to_str().unwrap().to_owned();
    let arguments = ["--tls-cert".into(), file("own.pem"), "--tls-key".into(), file("own.key")];
    service.arguments = arguments.to_vec();
    service.launch().await;
    fs::write(service.path("root/a"), "abc").unwrap();
    let place = |authorities: Option<PathBuf>| {
        let keys = Arc::new(KeyFile::open(&service.path("secret")).unwrap());
        let mut settings = RemoteSettings::new(format!("https://127.0.0.1:{}", service.port));
        settings.tls.authorities = authorities;
        RemotePlace::new(&settings, keys).unwrap()
    };
    let trusted = place(Some(service.path("ca.pem")));
    let stat = trusted.run(|client| async move { client.stat("a").await }).await.unwrap();
    assert_eq!(stat.size, 3);
    let stranger = tempfile::tempdir().unwrap();
    certificates(stranger.path());
    let error = place(Some(stranger.path().join("ca.pem"))).client().await.err().unwrap();
    assert_eq!((error.kind(), error.may_pass()), (PlaceErrorKind::Certificate, false), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    let plain = service.remote().client().await.err().unwrap();
    assert_eq!(plain.kind(), PlaceErrorKind::BadPath, "{plain}");
    // And a service without TLS is no service with it.
    service.kill_9();
    service.arguments.clear();
    service.launch().await;
    let error = trusted.client_after(u64::MAX).await.err().unwrap();
    assert_eq!(error.kind(), PlaceErrorKind::BadPath, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_believes_a_private_authority_and_without_it_says_what_is_missing()
-> anyhow::Result<()> {
    const AUTHORITIES: &str = "SANDBANK_WORKSPACE_SERVICE_AUTHORITIES";
    if skip_unless_root() {
        return Ok(());
    }
    if find_program("openssl").is_none() {
        println!("skipped: there is no openssl to make certificates with");
        return Ok(());
    }
    let mut service = Service::prepare();
    certificates(service.directory.path());
    let file = |name: &str| service.path(name).to_str().unwrap().to_owned();
    let (ca, secret) = (file("ca.pem"), file("secret"));
    let arguments = ["--tls-cert".into(), file("own.pem"), "--tls-key".into(), file("own.key")];
    service.arguments = arguments.to_vec();
    service.launch().await;
    let url = format!("https://127.0.0.1:{}", service.port);
    let settings = [
        ("WORKSPACE_MODE", "remote"),
        ("SANDBANK_WORKSPACE_SERVICE_URL", url.as_str()),
        ("SANDBANK_WORKSPACE_SERVICE_SECRET_FILE", secret.as_str()),
        (AUTHORITIES, ca.as_str()),
    ];
    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let body = serde_json::json!({ "content": "over TLS" });
    api.call("PUT", "/api/file?path=a", Some(body)).await?;
    assert_eq!(fs::read_to_string(service.path("root/a"))?, "over TLS");
    assert_eq!(api.call("GET", "/readyz", None).await?["status"], "ready");

    let stranger = tempfile::tempdir()?;
    certificates(stranger.path());
    let strangers = stranger.path().join("ca.pem").to_str().unwrap().to_owned();
    for authorities in [None, Some(strangers.as_str())] {
        daemon.terminate().await?;
        daemon.set(AUTHORITIES, authorities);
        let said = refused_start(&daemon)?;
        assert!(said.starts_with(&format!("error: {AUTHORITIES}: certificate: ")), "{said}");
        // One that comes later is not believed either.
        service.kill_9();
        daemon.launch().await?;
        service.launch().await;
        wait_for("somebody answers", LIMIT * 2, || async {
            matches!(api.try_call("GET", "/api/file?path=a", None).await, Ok((502, _)))
        })
        .await?;
        // Again and again: it is no outage that passes.
        for _ in 0..10 {
            let (status, answer) = api.try_call("GET", "/api/file?path=a", None).await?;
            let said = answer["detail"].as_str().unwrap();
            assert_eq!(status, 502, "{said}");
            assert!(said.contains("certificate") && said.contains(AUTHORITIES), "{said}");
        }
        let (status, ready) = api.try_call("GET", "/readyz", None).await?;
        let said = ready["checks"]["workspace_service"]["message"].as_str().unwrap();
        assert_eq!(status, 503, "{ready}");
        assert!(said.starts_with("certificate: ") && said.contains(AUTHORITIES), "{said}");
    }
    let log = fs::read_to_string(daemon.log_path())?;
    assert!(log.contains("UnknownIssuer"), "the log does not say why");
    let probe = |authorities: &str| {
        let mut command = Command::new(SANDBANK);
        command.args(["workspace-service", "--probe", &url, "--secret-file", &secret]);
        command.args(["--authorities", authorities]).stdin(Stdio::null()).output().unwrap()
    };
    assert!(probe(&ca).status.success(), "{:?}", probe(&ca));
    let refused = probe(&strangers);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("certificate"), "{said}");
    assert!(said.contains("--authorities"), "{said}");
    daemon.finish().await
}
