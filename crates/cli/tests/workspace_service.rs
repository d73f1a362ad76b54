//! The program `sandbank workspace-service`: killed, started again, told to stop, and over TLS.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbank_protocol::{CommandSpec, Frame};
use sandbank_test_support::{TestDaemon, find_program, free_port, skip_unless_root, wait_for};
use sandbank_workspace::{
    KeyFile, Place, PlaceCalls, PlaceErrorKind, PlaceState, RemotePlace, RemoteSettings,
};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const LIMIT: Duration = Duration::from_secs(30);
const SECRET: &str = "the secret of these tests, 40 characters";

struct Service {
    directory: tempfile::TempDir,
    port: u16,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Service {
    fn prepare() -> Self {
        let directory = tempfile::Builder::new().prefix("sandbank-service-").tempdir().unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        let service =
            Self { directory, port: free_port().unwrap(), arguments: Vec::new(), child: None };
        service.write_secret(SECRET);
        service
    }

    async fn start() -> Self {
        let mut service = Self::prepare();
        service.launch().await;
        service
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write_secret(&self, text: &str) {
        fs::write(self.path("secret"), text).unwrap();
        fs::set_permissions(self.path("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(SANDBANK);
        command
            .arg("workspace-service")
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .arg("--root")
            .arg(self.path("root"))
            .arg("--secret-file")
            .arg(self.path("secret"))
            .arg("--data-dir")
            .arg(self.path("data"))
            .args(&self.arguments)
            .stdin(Stdio::null());
        command
    }

    fn run_with(&self, word: &str) -> Output {
        self.command().arg(word).output().unwrap()
    }

    async fn launch(&mut self) {
        let log = fs::File::options().append(true).create(true).open(self.path("log")).unwrap();
        self.child = Some(self.command().stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let port = self.port;
        let up = wait_for("the service listens", LIMIT, || async move {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        });
        up.await.unwrap_or_else(|error| panic!("{error}: {}", self.log()));
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn kill_9(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().unwrap().id();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    }

    fn remote(&self) -> RemotePlace {
        let keys = Arc::new(KeyFile::open(&self.path("secret")).unwrap());
        RemotePlace::new(&RemoteSettings::new(format!("http://127.0.0.1:{}", self.port)), keys)
            .unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.arguments.clear();
        self.write_secret(SECRET);
        let _ = self.run_with("--stop-runner");
    }
}

fn spec(id: &str, script: &str) -> CommandSpec {
    let spec = serde_json::json!({ "id": id, "argv": ["bash", "-c", script] });
    serde_json::from_value(spec).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_of_the_service_loses_no_command_and_no_line() {
    const LINES: u64 = 300;
    let mut service = Service::start().await;
    let place = service.remote();
    let script = format!("for i in $(seq {LINES}); do echo line $i; sleep 0.01; done; exit 42");
    let spec = spec("survivor", &script);
    let (id, wanted) = (spec.id.clone(), &spec);
    let start = |client: sandbank_channel::RunnerClient| async move { client.start(wanted).await };
    let started = place.run(start).await.unwrap();
    let (mut text, mut after, mut kills) = (Vec::new(), 0, 0);
    let ending = 'reading: loop {
        let (asked, id) = (after, &id);
        let output = place.run(|client| async move { client.output(id, asked, true).await });
        let mut output = output.await.unwrap();
        loop {
            match output.next().await {
                Ok(Some(frame)) => {
                    after = frame.seq();
                    match frame {
                        Frame::Output { data, .. } => text.extend_from_slice(&data),
                        Frame::Ended { ending, .. } => break 'reading ending,
                        _ => {}
                    }
                }
                Ok(None) => panic!("a stream ended without the command's ending"),
                Err(_) => break,
            }
            if text.len() > 500 * (kills + 1) && kills < 3 {
                kills += 1;
                service.kill_9();
                service.launch().await;
            }
        }
    };
    let expected: String = (1..=LINES).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), expected, "every line exactly once");
    let ending: sandbank_protocol::Ending = serde_json::from_slice(&ending).unwrap();
    assert_eq!((ending.exit_code(), kills), (Some(42), 3));
    let again = place.run(start).await.unwrap();
    assert!(again.attached && again.status.pid == started.status.pid, "it ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_with_kills_of_the_service_between_lose_none_that_may_be_repeated() {
    const CALLS: usize = 1_000;
    const KILLS: usize = 8;
    let mut service = Service::start().await;
    fs::write(service.path("root/a"), "abc").unwrap();
    let place = Arc::new(service.remote());
    let made = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let (place, made) = (place.clone(), made.clone());
            tokio::spawn(async move {
                while made.fetch_add(1, Ordering::SeqCst) < CALLS {
                    let name = format!("file-{worker}");
                    let name = &name;
                    let body = "x".repeat(1_000);
                    let body = &body;
                    place
                        .run(|client| async move {
                            let body = sandbank_channel::full_body(body.clone());
                            client.write_file(name, None, body).await
                        })
                        .await
                        .map_err(|error| format!("write: {error}"))?;
                    let stat = place.run(|client| async move { client.stat("a").await });
                    let stat = stat.await.map_err(|error| format!("stat: {error}"))?;
                    assert_eq!(stat.size, 3);
                }
                Ok::<(), String>(())
            })
        })
        .collect();
    for kill in 1..=KILLS {
        let reached = || async { made.load(Ordering::SeqCst) >= kill * CALLS / (KILLS + 1) };
        wait_for("calls are made", LIMIT * 2, reached).await.unwrap();
        service.kill_9();
        service.launch().await;
    }
    for worker in workers {
        let lost = worker.await.unwrap();
        assert_eq!(lost, Ok(()), "{}", service.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_stops_when_told_rereads_its_secret_and_is_alone_in_its_directory() {
    let mut service = Service::start().await;
    let place = service.remote();
    place.client().await.unwrap();
    let occupied = service.port;
    service.port = free_port().unwrap();
    let output = service.command().output().unwrap();
    service.port = occupied;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(said.contains("another sandbank has the runner"), "{said}");

    let new = "n".repeat(40);
    let old = place;
    service.write_secret(&new);
    service.signal(Signal::HUP);
    let renewed = service.remote();
    wait_for("the new secret is taken", LIMIT, || async {
        renewed.health().await.state == PlaceState::Healthy
    })
    .await
    .unwrap();
    drop(old);
    service.write_secret(SECRET);
    service.signal(Signal::HUP);
    wait_for("the new secret is refused", LIMIT, || async {
        let fixed = KeyFile::fixed(sandbank_workspace::Keys::parse(&"n".repeat(40)).unwrap());
        let settings = RemoteSettings::new(format!("http://127.0.0.1:{}", service.port));
        let place = RemotePlace::new(&settings, Arc::new(fixed)).unwrap();
        place.health().await.wrong.is_some_and(|wrong| wrong.kind == PlaceErrorKind::Auth)
    })
    .await
    .unwrap();

    service.signal(Signal::TERM);
    let mut child = service.child.take().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", service.log());
    assert!(!service.log().contains(SECRET) && !service.log().contains(&new));
    let ended = service.run_with("--stop-runner");
    assert!(ended.status.success());
}

#[test]
fn settings_that_cannot_work_are_refused_with_every_line_at_once() {
    let service = Service::prepare();
    let check = service.run_with("--check");
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    let output = Command::new(SANDBANK)
        .args(["workspace-service", "--root", "/", "--secret-file", "/nowhere"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{said}");
    for line in ["WORKSPACE_ROOT", "the whole machine", "WORKSPACE_SECRET_FILE", "openssl rand"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

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
    // Without TLS there is nobody.
    let plain = service.remote().client().await.err().unwrap();
    assert_ne!(plain.kind(), PlaceErrorKind::Refused, "{plain}");
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
        daemon.launch().await?;
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
