//! The daemon over Docker: everything that is above the engine works, and a Docker that is away is
//! said to be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod untested;

use std::time::Duration;

use sandbank_test_support::{Api, PrivateDocker, TestDaemon, eventually};
use serde_json::json;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const IMAGE: &str = "sandbank-test";
const LIMIT: Duration = Duration::from_secs(30);

/// What a script prints.
async fn sh(api: &Api, sandbox: &str, script: &str) -> anyhow::Result<String> {
    let body = json!({ "argv": ["sh", "-c", script] });
    let command = api.start(sandbox, body).await?;
    api.wait(sandbox, &command).await?;
    let records = api.logs(sandbox, &command).await?;
    Ok(records.into_iter().filter(|r| r.stream == "stdout").map(|r| r.data).collect())
}

/// Objects in Docker that carry the daemon's label.
fn residue(docker: &PrivateDocker, daemon: &TestDaemon) -> anyhow::Result<Vec<String>> {
    let instance = std::fs::read_to_string(daemon.data_dir().join("instance"))?;
    docker.objects_of(instance.trim())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_over_docker_serves_survives_and_says_when_docker_is_away() -> anyhow::Result<()> {
    let Some(mut docker) = PrivateDocker::with_busybox(false, IMAGE)? else { return Ok(()) };
    let socket = docker.socket().to_str().unwrap().to_owned();
    let mut daemon = TestDaemon::start_with(
        SANDBANK,
        &[
            ("SANDBANK_ENGINE", "docker"),
            ("SANDBOXD_DOCKER_SOCKET", &socket),
            ("SANDBANK_DOCKER_IMAGE", IMAGE),
        ],
    )
    .await?;
    let api = daemon.api()?;
    let health = api.call("GET", "/v1/health", None).await?;
    assert_eq!((&health["ok"], &health["engine"]), (&true.into(), &"docker".into()));

    let sandbox = api.create("first").await?;
    api.write(&sandbox, "/vercel/sandbox/workspace/note", b"kept").await?;
    assert_eq!(sh(&api, &sandbox, "cat note; id -u").await?, "kept1000\n");

    let contained = api.call("GET", &format!("/v1/sandboxes/{sandbox}/containment"), None).await?;
    assert_eq!(contained["contained"], true, "{contained}");
    let doctor = daemon
        .cli()
        .args(["doctor", "--json"])
        .env("SANDBANK_ENGINE", "docker")
        .env("SANDBANK_DOCKER_HOST", &socket)
        .output()?;
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout)?;
    assert_eq!(report["ready"], true, "{report}");
    assert!(report["engine"].as_str().unwrap().starts_with("docker "), "{report}");
    // From outside of Docker's network, as from a container, its host's addresses are not known.
    let egress = network_egress(&report);
    assert_eq!(egress["standing"], "weaker", "{egress}");
    assert!(egress["fix"].as_str().unwrap().contains("docker.host_addresses"), "{egress}");
    let on_its_host = docker
        .enter(SANDBANK)?
        .args(["doctor", "--json"])
        .env("SANDBANK_DATA_DIR", docker.dir().join("data-of-doctor"))
        .env("SANDBANK_ENGINE", "docker")
        .env("SANDBANK_DOCKER_HOST", &socket)
        .output()?;
    let report: serde_json::Value = serde_json::from_slice(&on_its_host.stdout)?;
    let egress = network_egress(&report);
    assert_eq!(egress["standing"], "in_force", "{egress}");

    // The next daemon goes on where this one was killed.
    let long = json!({ "argv": ["sh", "-c", "sleep 4; echo survived"] });
    let command = api.start(&sandbox, long).await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    assert_eq!(api.wait(&sandbox, &command).await?, 0);
    let records = api.logs(&sandbox, &command).await?;
    assert!(records.iter().any(|record| record.data == "survived\n"), "{records:?}");

    // Behind its back.
    docker.said(&["rm", "--force", &format!("sandbank-{sandbox}")])?;
    eventually("the sandbox is gone", LIMIT, || async { is_gone(&api, &sandbox).await }).await?;

    let second = api.create("second").await?;
    docker.stop_daemon()?;
    let refused = api.request("POST", "/v1/sandboxes").json(&create("third")).send().await?;
    let retry = refused.headers().get("retry-after").cloned();
    let (status, body) = (refused.status().as_u16(), refused.text().await?);
    assert_eq!(status, 503, "{body}");
    assert!(retry.is_some(), "{body}");
    assert!(body.contains("engine_unavailable"), "{body}");
    eventually("nobody is told that all is well", LIMIT, || async {
        let (status, health) = api.try_call("GET", "/v1/health", None).await.ok()?;
        let (ready, _) = api.try_call("GET", "/readyz", None).await.ok()?;
        (status == 503 && health["code"] == "engine_unavailable" && ready == 503).then_some(())
    })
    .await?;
    docker.start_daemon()?;
    eventually("the sandbox that ended with Docker is known to be", LIMIT, || async {
        is_gone(&api, &second).await
    })
    .await?;
    let third =
        eventually("Docker is used again", LIMIT, || async { api.create("third").await.ok() })
            .await?;
    assert_eq!(sh(&api, &third, "echo back").await?, "back\n");
    eventually("it is ready again", LIMIT, || async {
        let (ready, _) = api.try_call("GET", "/readyz", None).await.ok()?;
        let (health, _) = api.try_call("GET", "/v1/health", None).await.ok()?;
        (ready == 200 && health == 200).then_some(())
    })
    .await?;

    api.delete_all().await?;
    daemon.terminate().await?;
    assert_eq!(residue(&docker, &daemon)?, Vec::<String>::new());
    daemon.set("SANDBANK_ENGINE", Some("native"));
    daemon.finish().await
}

fn network_egress(report: &serde_json::Value) -> &serde_json::Value {
    let mut controls = report["controls"].as_array().unwrap().iter();
    controls.find(|row| row["control"] == "network_egress").unwrap()
}

/// Not among those that run.
async fn is_gone(api: &Api, sandbox: &str) -> Option<()> {
    let listed = api.sandboxes().await.ok()?;
    let mut running = listed.iter().filter(|one| one["state"] == "running");
    running.all(|one| !one.to_string().contains(sandbox)).then_some(())
}

fn create(key: &str) -> serde_json::Value {
    json!({ "sessionKey": key, "network": { "mode": "none" } })
}

#[test]
fn a_docker_that_is_not_there_is_named_with_the_next_step() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let socket = data.path().join("nothing.sock");
    let ended = std::process::Command::new(SANDBANK)
        .arg("serve")
        .env("SANDBANK_DATA_DIR", data.path().join("data"))
        .env("SANDBANK_PORT", "0")
        .env("SANDBANK_ENGINE", "docker")
        .env("SANDBANK_DOCKER_HOST", &socket)
        .output()?;
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(75), "{text}");
    assert!(text.contains(socket.to_str().unwrap()), "{text}");
    assert!(text.contains("systemctl start docker"), "{text}");
    Ok(())
}
