//! The daemon tests itself before it serves, shows what it found, and refuses when a control that
//! it claims does not hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::{
    SUITE_IMAGE, TestDaemon, eventually, free_port, is_over_docker, skip_over_docker,
    skip_unless_root, wait_for,
};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// What makes a build for development leave a control out of every sandbox.
const LEAVE_OUT: &str = "SANDBANK_TEST_LEAVE_OUT";

/// On the directory of a daemon, which runs or not.
fn sandbank(daemon: &TestDaemon, words: &[&str], left_out: &str) -> Output {
    Command::new("timeout")
        .args(["--kill-after=5", "60", SANDBANK])
        .args(words)
        .env("SANDBANK_DATA_DIR", daemon.data_dir())
        .env("SANDBOXD_PORT", free_port().unwrap().to_string())
        .envs(daemon.settings())
        .envs((!left_out.is_empty()).then_some((LEAVE_OUT, left_out)))
        .env_remove("SANDBANK_URL")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A debug build of the native engine can leave controls out.
fn cannot_leave_out() -> bool {
    if !cfg!(debug_assertions) {
        println!("skipped: only a build for development can leave a control out");
    }
    !cfg!(debug_assertions) || skip_over_docker("no control can be left out by a test")
}

#[test]
fn a_daemon_whose_sandboxes_leak_refuses_to_serve_and_names_the_control() -> anyhow::Result<()> {
    if skip_unless_root() || cannot_leave_out() {
        return Ok(());
    }
    for control in ["seccomp", "landlock", "no_capabilities", "pids_limit"] {
        let daemon = TestDaemon::prepare(SANDBANK, &[])?;
        let output = sandbank(&daemon, &["serve"], control);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{control}: {said}");
        assert!(said.contains(&format!("{control} does not hold")), "{control}: {said}");
        assert!(said.contains(&format!("SANDBANK_ALLOW_WEAKER={control}")), "{said}");
        assert!(said.contains("doctor --attack"), "{said}");
        let record = std::fs::read_to_string(daemon.data_dir().join("containment.json"));
        assert!(record.is_err(), "a failure is not remembered as passed: {record:?}");
        let left = daemon.residue()?;
        assert!(left.is_empty(), "{left:#?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_that_is_accepted_to_be_weaker_keeps_nobody_from_serving() -> anyhow::Result<()> {
    if skip_unless_root() || cannot_leave_out() {
        return Ok(());
    }
    let settings = [(LEAVE_OUT, "landlock"), ("SANDBANK_ALLOW_WEAKER", "landlock")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let id = api.create("weaker").await?;
    let report = api.call("GET", &format!("/v1/sandboxes/{id}/containment"), None).await?;
    assert_eq!(report["contained"], true);
    assert_eq!(probe(&report, "landlock_domain")["standing"], "not_claimed");
    assert_eq!(probe(&report, "seccomp_filter")["standing"], "held");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_kept_until_what_it_depends_on_changes() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    const TESTED: &str = "containment tested";
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let tests = |daemon: &TestDaemon| {
        let log = std::fs::read_to_string(daemon.log_path()).unwrap();
        log.matches(TESTED).count()
    };
    assert_eq!(tests(&daemon), 1);
    let record = daemon.data_dir().join("containment.json");
    let first = std::fs::read_to_string(&record)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let image = if is_over_docker() { SUITE_IMAGE } else { "host" };
    let image = format!("image {image}");
    for part in ["sandbank 0", "runner ", "kernel ", boot.trim(), &image] {
        assert!(first.contains(part), "no {part} in {first}");
    }

    daemon.terminate().await?;
    daemon.launch().await?;
    assert_eq!(tests(&daemon), 1, "nothing has changed");

    daemon.terminate().await?;
    std::fs::write(&record, first.replace(boot.trim(), "another boot"))?;
    daemon.launch().await?;
    assert_eq!(tests(&daemon), 2, "the machine was booted since");
    assert!(
        !std::fs::read_to_string(&record)?.contains("another boot"),
        "the old one is forgotten"
    );

    daemon.terminate().await?;
    std::fs::write(&record, "{ damaged")?;
    daemon.launch().await?;
    assert_eq!(tests(&daemon), 3, "a damaged record is none");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_attacked_as_soon_as_it_is_imported() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let (_tree, archive) = little_archive()?;
    let words = ["image", "import", "little", archive.to_str().unwrap()];
    let output = sandbank(&daemon, &words, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record: Value =
        serde_json::from_slice(&std::fs::read(daemon.data_dir().join("containment.json"))?)?;
    let held = record["held"].as_array().unwrap();
    let little = held.iter().find(|held| held["key"].as_str().unwrap().contains("image little"));
    let probes = little.expect("it was tested")["report"]["probes"].as_array().unwrap().clone();
    assert!(probes.iter().any(|probe| probe["standing"] == "held"), "{probes:#?}");
    let id = daemon.api()?.create_with(json!({ "sessionKey": "l", "image": "little" })).await?;
    daemon.api()?.call("GET", &format!("/v1/sandboxes/{id}/commands"), None).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_sandboxes_leak_is_not_kept() -> anyhow::Result<()> {
    if skip_unless_root() || cannot_leave_out() {
        return Ok(());
    }
    let daemon = TestDaemon::start_with(SANDBANK, &[(LEAVE_OUT, "landlock@leaky")]).await?;
    let (_tree, archive) = little_archive()?;
    let import =
        |name| sandbank(&daemon, &["image", "import", name, archive.to_str().unwrap()], "");
    let refused = import("leaky");
    let said = text(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("was not contained") && said.contains("landlock"), "{said}");
    let held = import("tight");
    assert!(held.status.success(), "{}", text(&held.stderr));
    let api = daemon.api()?;
    let images = api.call("GET", "/v1/images", None).await?.to_string();
    assert!(images.contains("tight") && !images.contains("leaky"), "{images}");
    let made = api.create_with(json!({ "sessionKey": "l", "image": "leaky" })).await;
    assert!(made.is_err(), "a sandbox was made of it: {made:?}");
    api.create_with(json!({ "sessionKey": "t", "image": "tight" })).await?;
    daemon.finish().await
}

/// An archive with an empty directory in it, and the directory that both are in.
fn little_archive() -> anyhow::Result<(tempfile::TempDir, PathBuf)> {
    let tree = tempfile::tempdir()?;
    std::fs::create_dir(tree.path().join("etc"))?;
    let archive = tree.path().join("little.tar");
    let mut tar = Command::new("tar");
    tar.arg("cf").arg(&archive).arg("-C").arg(tree.path()).arg("etc");
    anyhow::ensure!(tar.status()?.success(), "tar failed");
    Ok((tree, archive))
}

fn probe<'a>(report: &'a Value, name: &str) -> &'a Value {
    let probes = report["probes"].as_array().unwrap();
    probes.iter().find(|probe| probe["name"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_sandbox_is_attacked_on_request_and_not_disturbed() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("attacked").await?;
    let counting = api.bash(&id, "for i in 1 2 3; do echo $i; sleep 0.1; done").await?;
    let route = format!("/v1/sandboxes/{id}/containment");
    let report = api.call("GET", &route, None).await?;
    assert_eq!((&report["contained"], &report["sandboxId"]), (&true.into(), &Value::from(&*id)));
    for held in ["seccomp_filter", "mount_calls", "first_process", "host_pids_limit"] {
        assert_eq!(probe(&report, held)["standing"], "held", "{report:#}");
    }
    // Others may need what these would use up.
    for left in ["process_burst", "private_addresses"] {
        assert_eq!(probe(&report, left)["standing"], "not_tried", "{report:#}");
    }
    for field in ["control", "attack", "refusal", "counterpart", "evidence"] {
        let said = probe(&report, "mount_calls")[field].as_str().unwrap();
        assert!(!said.is_empty(), "{field}");
    }
    assert_eq!(api.wait(&id, &counting).await?, 0);
    assert_eq!(api.run(&id, "ls -A; echo alive").await?.1, "alive\n");

    let (status, _) = api.try_call("GET", "/v1/sandboxes/sb_unknown/containment", None).await?;
    assert_eq!(status, 404);
    let without = reqwest_status(&daemon, &route).await?;
    assert_eq!(without, 401, "it runs a command, so it needs a token, on loopback too");
    daemon.finish().await
}

async fn reqwest_status(daemon: &TestDaemon, route: &str) -> anyhow::Result<u16> {
    let anonymous = sandbank_test_support::Api::new(daemon.url(), "wrong".to_owned());
    Ok(anonymous.try_call("GET", route, None).await?.0)
}

#[test]
fn doctor_attacks_a_sandbox_and_shows_what_held() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::prepare(SANDBANK, &[])?;
    let output = sandbank(&daemon, &["doctor", "--attack"], "");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    let held = shown.lines().filter(|line| line.starts_with("held")).count();
    assert!(held > 25 && shown.contains("mount_calls"), "{shown}");

    let output = sandbank(&daemon, &["doctor", "--attack", "--json"], "");
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["contained"], true);
    println!("durationMs: {}", report["durationMs"]);
    if !cannot_leave_out() {
        let output = sandbank(&daemon, &["doctor", "--attack", "--json"], "seccomp");
        assert_eq!(output.status.code(), Some(78));
        let report: Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(report["contained"], false);
        assert_eq!(probe(&report, "mount_calls")["standing"], "failed");
        assert_eq!(probe(&report, "capability_sets")["standing"], "held");
    }
    let left = daemon.residue()?;
    assert!(left.is_empty(), "{left:#?}");
    Ok(())
}

/// Longer than the daemon waits between two tests of itself.
const RETESTED: Duration = Duration::from_secs(60);

/// What keeps a canary from being examined, until it is removed.
fn obstruct(data: &Path) -> anyhow::Result<PathBuf> {
    let obstacle = data.join("canary");
    for file in [&obstacle, &data.join("containment.json")] {
        let _ = std::fs::remove_file(file);
    }
    std::fs::create_dir(&obstacle)?;
    Ok(obstacle)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_tested_is_not_made_until_it_can_and_sandboxes_go_on() -> anyhow::Result<()>
{
    if skip_unless_root()
        || skip_over_docker("no file of the host keeps a canary from being tested")
    {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("before").await?;
    daemon.terminate().await?;
    let obstacle = obstruct(daemon.data_dir())?;
    daemon.launch().await?;

    assert_eq!(api.create("before").await?, id, "its key is known");
    assert_eq!(api.run(&id, "echo alive").await?.1, "alive\n");
    let body = json!({ "sessionKey": "after", "network": { "mode": "none" } });
    let (status, answer) = api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    assert_eq!((status, &answer["code"]), (503, &json!("containment_untested")), "{answer}");
    assert!(answer["hint"].is_string() && answer["retryable"] == true, "{answer}");

    std::fs::remove_dir(obstacle)?;
    let after = eventually("a test", RETESTED, || async { api.create("after").await.ok() }).await?;
    assert_eq!(api.run(&after, "echo alive").await?.1, "alive\n");
    assert_eq!(api.run(&id, "echo alive").await?.1, "alive\n");
    assert!(daemon.data_dir().join("containment.json").exists(), "the result is remembered");
    let log = std::fs::read_to_string(daemon.log_path())?;
    assert!(!log.contains("without an owner"), "a canary was swept away: {log}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leak_that_is_found_late_ends_the_daemon() -> anyhow::Result<()> {
    if skip_unless_root() || cannot_leave_out() {
        return Ok(());
    }
    let mut daemon = TestDaemon::prepare(SANDBANK, &[(LEAVE_OUT, "seccomp")])?;
    let obstacle = obstruct(daemon.data_dir())?;
    daemon.launch().await?;
    std::fs::remove_dir(obstacle)?;
    let status = daemon.died().await?;
    let log = std::fs::read_to_string(daemon.log_path())?;
    assert_eq!(status.code(), Some(78), "{log}");
    assert!(log.contains("seccomp does not hold"), "{log}");
    let left = daemon.residue()?;
    assert!(left.is_empty(), "{left:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_is_interrupted_leaves_no_canary() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let cases: [(&[&str], _, _); 2] =
        [(&["serve"], Signal::TERM, 0), (&["doctor", "--attack"], Signal::INT, 130)];
    for (words, signal, code) in cases {
        if words[0] == "doctor" && skip_over_docker("nothing says whose the canary of doctor is") {
            continue;
        }
        let daemon = TestDaemon::prepare(SANDBANK, &[])?;
        let mut child = Command::new(SANDBANK)
            .args(words)
            .env("SANDBANK_DATA_DIR", daemon.data_dir())
            .env("SANDBOXD_PORT", free_port()?.to_string())
            .envs(daemon.settings())
            .env_remove("SANDBANK_URL")
            .spawn()?;
        let mut seen = BTreeSet::new();
        wait_for("a canary", RETESTED, || {
            seen.extend(instances(&daemon));
            let found = canaries(&daemon, &seen);
            async move { found.is_ok_and(|found| !found.is_empty()) }
        })
        .await?;
        kill_process(Pid::from_child(&child), signal)?;
        let status = eventually("its end", RETESTED, || {
            let status = child.try_wait();
            async { status.ok().flatten() }
        });
        assert_eq!(status.await?.code(), Some(code), "{words:?}");
        let left = (canaries(&daemon, &seen)?, daemon.residue()?);
        assert!(left.0.is_empty() && left.1.is_empty(), "{words:?}: {left:#?}");
        let record = daemon.data_dir().join("containment.json");
        assert!(!record.exists(), "nothing was tested");
    }
    Ok(())
}

/// A data directory, and those below it, as `doctor` makes them.
fn places(daemon: &TestDaemon) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(daemon.data_dir()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).chain([daemon.data_dir().to_owned()]).collect()
}

fn instances(daemon: &TestDaemon) -> Vec<String> {
    let of = |place: PathBuf| std::fs::read_to_string(place.join("instance")).ok();
    places(daemon).into_iter().filter_map(of).map(|text| text.trim().to_owned()).collect()
}

/// Machines, in whatever directory; in Docker, of the instances that were ever seen there.
fn canaries(daemon: &TestDaemon, seen: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let Some(docker) = daemon.docker() else {
        let machines = places(daemon).into_iter().map(|place| place.join("machines"));
        let machines = machines.filter_map(|place| std::fs::read_dir(place).ok()).flatten();
        let paths = machines.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        return Ok(paths.map(|path| path.display().to_string()).collect());
    };
    let mut found = Vec::new();
    for instance in seen {
        found.extend(docker.objects_of(instance)?);
    }
    Ok(found)
}
