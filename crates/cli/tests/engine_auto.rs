//! `engine = "auto"`: the native engine where its controls can be enforced, else Docker, with the
//! reason; and never another one than the sandboxes that there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sandbank_test_support::{Api, PrivateDocker, TestDaemon};
use serde_json::json;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const IMAGE: &str = "sandbank-test";
const LACK: &str = "user namespaces are turned off";

/// The program; as long as the file `lacking` is there, on a machine without user namespaces, as
/// far as it can see.
fn program(directory: &Path) -> anyhow::Result<PathBuf> {
    let (program, zero) = (directory.join("sandbank"), directory.join("zero"));
    fs::write(&zero, "0\n")?;
    let script = format!(
        "#!/bin/sh\ntest -e {lacking} || exec {SANDBANK} \"$@\"\n\
         exec unshare --mount --propagation slave sh -c '\
         mount --bind {zero} /proc/sys/user/max_user_namespaces && exec {SANDBANK} \"$@\"' sh \"$@\"\n",
        lacking = lacking(directory).display(),
        zero = zero.display(),
    );
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

fn lacking(directory: &Path) -> PathBuf {
    directory.join("lacking")
}

/// Which engine the next daemon takes, and what its log says of it.
async fn restarted(daemon: &mut TestDaemon) -> anyhow::Result<(String, String)> {
    daemon.terminate().await?;
    let before = fs::read_to_string(daemon.log_path())?.len();
    daemon.launch().await?;
    let log = fs::read_to_string(daemon.log_path())?.split_off(before);
    Ok((engine(&daemon.api()?).await?, log))
}

async fn engine(api: &Api) -> anyhow::Result<String> {
    let health = api.call("GET", "/v1/health", None).await?;
    Ok(health["engine"].as_str().unwrap().to_owned())
}

async fn echoes(api: &Api, sandbox: &str) -> anyhow::Result<()> {
    let command = api.start(sandbox, json!({ "argv": ["sh", "-c", "echo on"] })).await?;
    let records = api.logs(sandbox, &command).await?;
    assert!(records.iter().any(|record| record.data == "on\n"), "{records:?}");
    Ok(())
}

/// A create that names what it lacks.
async fn is_refused(api: &Api) -> anyhow::Result<()> {
    let body = json!({ "sessionKey": "refused", "network": { "mode": "none" } });
    let (status, answer) = api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    assert!(status >= 400, "{answer}");
    let said = answer.to_string();
    assert!(said.contains("user_namespace") && said.contains(LACK), "{status} {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_is_native_where_it_holds_else_docker_and_never_leaves_sandboxes_behind()
-> anyhow::Result<()> {
    let Some(mut docker) = PrivateDocker::with_busybox(false, IMAGE)? else { return Ok(()) };
    let socket = docker.socket().to_str().unwrap().to_owned();
    let settings = [
        ("SANDBANK_ENGINE", "auto"),
        ("SANDBANK_DOCKER_HOST", &*socket),
        ("SANDBANK_DOCKER_IMAGE", IMAGE),
        ("SANDBANK_STORAGE", "plain"),
    ];
    let directory = tempfile::tempdir()?;
    let lacking = lacking(directory.path());
    let mut daemon = TestDaemon::start_with(program(directory.path())?, &settings).await?;
    let api = daemon.api()?;
    assert_eq!(engine(&api).await?, "native", "though there is a Docker");
    let native = api.create("native").await?;

    fs::write(&lacking, "")?;
    let (engine, log) = restarted(&mut daemon).await?;
    assert_eq!(engine, "native", "it has a sandbox: {log}");
    echoes(&api, &native).await?;
    is_refused(&api).await?;

    api.delete_all().await?;
    let (engine, log) = restarted(&mut daemon).await?;
    assert_eq!(engine, "docker", "{log}");
    let told = log.lines().find(|line| line.contains("Docker is used")).unwrap_or_default();
    assert!(told.contains("user_namespace") && told.contains(LACK), "{log}");
    let contained = api.create("contained").await?;
    echoes(&api, &contained).await?;

    fs::remove_file(&lacking)?;
    let (engine, log) = restarted(&mut daemon).await?;
    assert_eq!(engine, "docker", "it has a sandbox: {log}");
    echoes(&api, &contained).await?;

    api.delete_all().await?;
    let (engine, log) = restarted(&mut daemon).await?;
    assert_eq!(engine, "native", "nothing speaks against it any more: {log}");
    assert_eq!(docker.objects_of(&daemon.instance()?)?, Vec::<String>::new());

    // Neither of the two: what was wanted first says what it lacks.
    docker.stop_daemon()?;
    fs::write(&lacking, "")?;
    let (engine, log) = restarted(&mut daemon).await?;
    assert_eq!(engine, "native", "{log}");
    is_refused(&api).await?;
    fs::remove_file(&lacking)?;
    daemon.finish().await
}
