//! The files below `deploy/`: the server as a container, on a real Docker of the test's own, and
//! as a service of systemd.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use sandbank_test_support::{PrivateDocker, busybox_root, wait_for};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const TOKEN: &str = "a-token-of-this-test-and-of-nothing-else";
const PROJECT: &str = "sandbank-test-deploy";
const IMAGE: &str = "sandbank-test";
const URL: &str = "http://127.0.0.1:8080";
const RANGE: &str = "20000-20003";

const FILES: [&str; 4] = ["--file", "deploy/compose.yaml", "--file", "deploy/compose.dev.yaml"];

const NOTHING: Vec<String> = Vec::new();

/// Starting includes the self-test, on a machine that may be busy.
const UP: Duration = Duration::from_secs(180);

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Of Compose: Debian 12's, or another that the environment names (`scripts/dockerfiles.sh` does).
fn compose() -> String {
    std::env::var("SANDBANK_TEST_COMPOSE").unwrap_or_else(|_| "docker-compose".to_owned())
}

fn there_is(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: there is no {program} here; see scripts/setup.sh --test");
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[track_caller]
fn done(output: &Output) -> String {
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {said} {complaint}", output.status);
    said
}

/// Compose and the command line, as somebody on the Docker's host has them.
struct Host {
    docker: PrivateDocker,
    /// Further variables of Compose.
    variables: Vec<(&'static str, String)>,
}

impl Host {
    /// With the two images there: the server's, and one for sandboxes.
    fn prepare(start: impl FnOnce() -> anyhow::Result<Option<PrivateDocker>>) -> Option<Self> {
        if !there_is(&compose()) {
            return None;
        }
        let docker = start().unwrap()?;
        let root = docker.dir().join("busybox.tar");
        busybox_root(&root).unwrap()?;
        docker.said(&["import", root.to_str().unwrap(), &format!("{IMAGE}:latest")]).unwrap();
        let host = Self { docker, variables: Vec::new() };
        host.make_server_image();
        Some(host)
    }

    /// Of this build, or one that `docker build` has made, if the environment has its archive.
    fn make_server_image(&self) {
        if let Ok(archive) = std::env::var("SANDBANK_TEST_SERVER_IMAGE") {
            self.docker.said(&["load", "--input", &archive]).unwrap();
            return;
        }
        let program = self.docker.dir().join("sandbank");
        std::fs::copy(SANDBANK, &program).unwrap();
        // A build for tests is mostly debug information.
        let _ = Command::new("strip").arg(&program).status();
        let mut script = Command::new(repository().join("scripts/daemon-image.sh"));
        script.arg("sandbank:latest").arg(&program).env("DOCKER_HOST", self.docker_host());
        assert_eq!(done(&script.output().unwrap()), "sandbank:latest");
    }

    fn docker_host(&self) -> String {
        format!("unix://{}", self.docker.socket().display())
    }

    fn compose(&self, token: Option<&str>, words: &[&str]) -> Output {
        self.compose_with(&FILES, token, words)
    }

    fn compose_with(&self, files: &[&str], token: Option<&str>, words: &[&str]) -> Output {
        let group = {
            use std::os::unix::fs::MetadataExt;
            std::fs::metadata(self.docker.socket()).unwrap().gid()
        };
        let mut command = Command::new(compose());
        command
            .args(["--project-name", PROJECT])
            .args(files)
            .args(words)
            .current_dir(repository())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.docker.dir())
            .env("DOCKER_HOST", self.docker_host())
            .env("DOCKER_SOCKET", self.docker.socket())
            .env("DOCKER_GID", group.to_string())
            .env("SANDBANK_DOCKER_IMAGE", IMAGE)
            .env("SANDBANK_PORT_RANGE", RANGE)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(token) = token {
            command.env("SANDBOXD_ADMIN_TOKEN", token);
        }
        command.output().unwrap()
    }

    async fn up(&self) {
        done(&self.compose(Some(TOKEN), &["up", "--detach", "--no-build"]));
        self.healthy().await;
    }

    async fn healthy(&self) {
        let shown = wait_for("the server to be healthy", UP, || async {
            self.inspect("{{.State.Health.Status}}") == "healthy"
        });
        if let Err(error) = shown.await {
            let logs = self.compose(Some(TOKEN), &["logs", "--no-color"]);
            panic!("{error}: {} {}", text(&logs.stdout), self.docker.log_end());
        }
    }

    fn inspect(&self, format: &str) -> String {
        let id = done(&self.compose(Some(TOKEN), &["ps", "--quiet"]));
        self.docker.said(&["inspect", "--format", format, &id]).unwrap_or_default()
    }

    fn try_sandbank(&self, token: &str, words: &[&str]) -> Output {
        let mut command = self.docker.enter(SANDBANK).unwrap();
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.docker.dir())
            .env("SANDBANK_DATA_DIR", self.docker.dir().join("no-data"))
            .env("SANDBANK_URL", URL)
            .env("SANDBANK_TOKEN", token);
        command.output().unwrap()
    }

    fn sandbank(&self, words: &[&str]) -> String {
        done(&self.try_sandbank(TOKEN, words))
    }

    async fn page(&self, url: &str, expected: &str) {
        wait_for(&format!("{url} to show {expected:?}"), Duration::from_secs(30), || async {
            let mut curl = self.docker.enter("curl").unwrap();
            let answer = curl.args(["--silent", "--max-time", "5", url]).output().unwrap();
            text(&answer.stdout) == expected
        })
        .await
        .unwrap();
    }

    /// What a container beside the server is answered, under one of its names.
    fn asked_beside(&self, name: &str, token: &str) -> Output {
        let header = format!("Authorization: Bearer {token}");
        let url = format!("http://{name}:8080/v1/sandboxes");
        let beside = ["run", "--rm", "--network", "sandbank", IMAGE];
        let asks = ["wget", "-q", "-O", "-", "--header", &header, &url];
        self.docker.docker(&[&beside[..], &asks].concat()).unwrap()
    }

    /// Addresses and ports that somebody on the host listens on, as the kernel writes them.
    fn listening(&self) -> BTreeSet<String> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let tables = done(&self.docker.enter("cat").unwrap().args(tables).output().unwrap());
        let fields = tables.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let listening = fields.filter(|fields| fields.get(3) == Some(&"0A"));
        listening.map(|fields| fields[1].to_owned()).collect()
    }

    /// Containers, volumes and networks.
    fn labelled(&self, label: &str) -> Vec<String> {
        let lists = [&["ps", "--all"][..], &["volume", "ls"], &["network", "ls"]];
        let of = |list: &[&str]| {
            let filter = format!("label={label}");
            self.docker.said(&[list, &["--quiet", "--filter", &filter]].concat()).unwrap()
        };
        let said = lists.map(of).join("\n");
        said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_container_the_server_keeps_its_sandboxes_over_restarts_and_removal() {
    let Some(mut host) = Host::prepare(|| PrivateDocker::start(false)) else { return };
    // Nobody is there, and nobody waits for them.
    host.variables.push(("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318".to_owned()));

    let refused = host.compose(None, &["up", "--detach", "--no-build"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("set SANDBOXD_ADMIN_TOKEN to"), "{refused:?}");

    // Only the file for development shows the API to the host.
    let alone = host.compose_with(&["--file", "deploy/compose.yaml"], Some(TOKEN), &["config"]);
    let both = host.compose(Some(TOKEN), &["config"]);
    assert_eq!([alone, both].map(|config| done(&config).contains("8080")), [false, true]);

    host.up().await;
    let hardened = "{{.HostConfig.ReadonlyRootfs}} {{.Config.User}} {{.HostConfig.CapDrop}}";
    assert_eq!(host.inspect(hardened), "true 10001:10001 [ALL]");
    let told = host.inspect("{{.Config.Env}}");
    assert!(told.contains("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"), "{told}");
    let wrong = host.try_sandbank("another-token", &["ps"]);
    assert_eq!(wrong.status.code(), Some(77), "{wrong:?}");

    let script = "echo kept > file; echo made";
    let made = host.sandbank(&["run", "--keep", "--port", "3000", "--", "sh", "-c", script]);
    assert_eq!(made, "made");
    let id = host.sandbank(&["ps", "--quiet"]);
    let server = ["exec", &id, "--detach", "--", "httpd", "-f", "-p", "127.0.0.1:3000"];
    host.sandbank(&server);
    let url = host.sandbank(&["port", &id, "3000"]);
    assert_eq!(url, "http://127.0.0.1:20000", "of the range {RANGE}");
    host.page(&format!("{url}/file"), "kept").await;

    done(&host.compose(Some(TOKEN), &["restart"]));
    host.healthy().await;
    assert_eq!(host.sandbank(&["exec", &id, "--", "cat", "file"]), "kept");
    host.page(&format!("{url}/file"), "kept").await;

    done(&host.compose(Some(TOKEN), &["down"]));
    assert_ne!(host.labelled("sandbank.sandbox"), NOTHING, "they outlive the server");
    host.up().await;
    host.page(&format!("{url}/file"), "kept").await;

    let remove = ["exec", "-T", "sandbank", "sandbank", "rm", "--all"];
    done(&host.compose(Some(TOKEN), &remove));
    assert_eq!(host.labelled("sandbank.sandbox"), NOTHING);
    done(&host.compose(Some(TOKEN), &["down", "--volumes"]));
    assert_eq!(host.labelled("sandbank.instance"), NOTHING);
    assert_eq!(host.docker.said(&["ps", "--all", "--quiet"]).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_docker_maps_users_the_server_in_a_container_has_the_host_s() {
    let Some(mut host) = Host::prepare(PrivateDocker::with_mapped_users) else { return };
    let own = host.docker.mapped(10001).unwrap().to_string();
    host.variables.push(("SANDBANK_USER", format!("{own}:{own}")));
    let files = [&FILES[..], &["--file", "deploy/compose.userns-remap.yaml"]].concat();
    done(&host.compose_with(&files, Some(TOKEN), &["up", "--detach", "--no-build"]));
    host.healthy().await;
    let script =
        "echo kept > file; id -u; read inside outside rest < /proc/self/uid_map; echo $outside";
    let made = host.sandbank(&["run", "--keep", "--port", "3000", "--", "sh", "-c", script]);
    assert_eq!(made, format!("1000\n{}", host.docker.mapped(0).unwrap()));
    let id = host.sandbank(&["ps", "--quiet"]);
    host.sandbank(&["exec", &id, "--detach", "--", "httpd", "-f", "-p", "127.0.0.1:3000"]);
    let url = host.sandbank(&["port", &id, "3000"]);
    host.page(&format!("{url}/file"), "kept").await;
    host.sandbank(&["rm", "--all"]);
    done(&host.compose_with(&files, Some(TOKEN), &["down", "--volumes"]));
    assert_eq!(host.labelled("sandbank.instance"), NOTHING);
}

/// As the kernel writes the ports of [`RANGE`] at an address.
fn range_at(address: &str) -> BTreeSet<String> {
    (20000..=20003).map(|port: u16| format!("{address}:{port:04X}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn alone_the_server_is_reached_on_its_network_only_and_ports_have_the_public_name() {
    let Some(mut host) = Host::prepare(|| PrivateDocker::start(false)) else { return };
    let alone = ["--file", "deploy/compose.yaml"];
    let up = ["up", "--detach", "--no-build"];
    let before = host.listening();
    done(&host.compose_with(&alone, Some(TOKEN), &up));
    host.healthy().await;
    for name in ["sandbank", "sandboxd"] {
        let answer = done(&host.asked_beside(name, TOKEN));
        assert!(answer.contains("\"sandboxes\":[]"), "{name}: {answer}");
        assert!(!host.asked_beside(name, "another-token").status.success(), "{name}");
    }
    // Of the host's addresses only ports of sandboxes are taken, and only the one of loopback.
    let taken: BTreeSet<_> = host.listening().difference(&before).cloned().collect();
    assert_eq!(taken, range_at("0100007F"));

    host.variables.push(("SANDBOXD_PUBLIC_HOST", "sandboxes.example.org".to_owned()));
    host.variables.push(("SANDBOXD_PUBLIC_PROTO", "https".to_owned()));
    host.variables.push(("SANDBOXD_PUBLISH_HOST_IP", "127.0.0.2".to_owned()));
    done(&host.compose_with(&alone, Some(TOKEN), &up));
    host.healthy().await;
    let taken: BTreeSet<_> = host.listening().difference(&before).cloned().collect();
    assert_eq!(taken, range_at("0200007F"));
    let inside = |words: &[&str]| {
        let words = [&["exec", "-T", "sandbank", "sandbank"], words].concat();
        done(&host.compose_with(&alone, Some(TOKEN), &words))
    };
    inside(&["run", "--keep", "--port", "3000", "--", "sh", "-c", "echo kept > file"]);
    let id = inside(&["ps", "--quiet"]);
    inside(&["exec", &id, "--detach", "--", "httpd", "-f", "-p", "127.0.0.1:3000"]);
    assert_eq!(inside(&["port", &id, "3000"]), "https://sandboxes.example.org:20000");
    host.page("http://127.0.0.2:20000/file", "kept").await;
    inside(&["rm", "--all"]);
    done(&host.compose_with(&alone, Some(TOKEN), &["down", "--volumes"]));
    assert_eq!(host.labelled("sandbank.instance"), NOTHING);
}

#[test]
fn the_image_trusts_whom_the_machine_that_makes_it_trusts() {
    let authorities = Path::new("/etc/ssl/certs/ca-certificates.crt");
    let dir = tempfile::tempdir().unwrap();
    let mut script = Command::new(repository().join("deploy/root.sh"));
    // Any program that is linked does.
    done(&script.arg("/bin/sh").arg(dir.path()).output().unwrap());
    let inside = dir.path().join("root").join(authorities.strip_prefix("/").unwrap());
    assert_eq!(std::fs::read(inside).ok(), std::fs::read(authorities).ok());
}

#[test]
fn systemd_understands_the_unit() {
    if !there_is("systemd-analyze") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(repository().join("deploy/sandbank.service")).unwrap();
    let verify = |unit: &str| {
        let path = dir.path().join("sandbank.service");
        std::fs::write(&path, unit.replace("/usr/local/bin/sandbank", SANDBANK)).unwrap();
        let mut command = Command::new("systemd-analyze");
        let output = command.arg("verify").arg("--man=no").arg(&path).output().unwrap();
        // What it says of other units of this machine is not about ours.
        let said = text(&output.stderr);
        said.lines().filter(|line| line.contains("sandbank")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(verify(&unit), "");
    let slip = unit.replace("KillMode=process", "KillMode=proces");
    assert_ne!(slip, unit);
    assert_ne!(verify(&slip), "", "a slip would be seen");
}
