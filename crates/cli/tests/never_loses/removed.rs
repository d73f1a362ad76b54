//! Parts of a sandbox removed behind the daemon's back: the next calls say so with a reason, its
//! row is closed, the rest of it is gone, and its key makes a new one.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::{
    Api, TestDaemon, eventually, is_over_docker, skip_over_docker, skip_unless_root,
};
use serde_json::Value;
use tokio::time::timeout;

use crate::SANDBANK;
use crate::objects::{agree, cgroup_bases, runner_pid, workspace_dirs};
use crate::small_disk::run;

/// A death is told as it happens, and machines that are gone are looked for every second: two are
/// enough for either where nothing else has the processors, and how long it took is printed. That a
/// daemon which never looks is told, too, shows that nobody waits for a look. A call that meets a
/// death must not wait for a runner's answer, which takes longer than this.
const NOTICED: Duration = Duration::from_secs(9);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_runner_is_noticed() -> anyhow::Result<()> {
    noticed("signal 9", Daemon::Runs, kill).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_is_told_by_the_engine_as_it_happens_and_waits_for_no_look() -> anyhow::Result<()> {
    if !cfg!(debug_assertions) {
        println!("skipped: only a build for development can be told not to look");
        return Ok(());
    }
    if !is_over_docker() {
        return noticed("its runner died: signal 9", Daemon::NeverLooks, kill).await;
    }
    let killed = "its container was stopped or killed outside of Sandbank: signal 9";
    noticed(killed, Daemon::NeverLooks, kill).await?;
    noticed("its container was removed outside of Sandbank", Daemon::NeverLooks, remove).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_machine_is_noticed() -> anyhow::Result<()> {
    // By who looks, or by Docker's events.
    noticed("removed", Daemon::Runs, remove).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_killed_while_no_daemon_ran_is_noticed() -> anyhow::Result<()> {
    noticed("runner died", Daemon::IsAway, kill).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_removed_while_no_daemon_ran_is_noticed() -> anyhow::Result<()> {
    noticed("it was lost", Daemon::IsAway, |daemon, id| {
        if !is_over_docker() {
            kill(daemon, id)?;
        }
        remove(daemon, id)
    })
    .await
}

fn kill(daemon: &TestDaemon, id: &str) -> anyhow::Result<()> {
    match daemon.kill_container(id)? {
        true => Ok(()),
        false => Ok(kill_process(runner_pid(daemon, id)?, Signal::KILL)?),
    }
}

/// All that its engine knows it by.
fn remove(daemon: &TestDaemon, id: &str) -> anyhow::Result<()> {
    let Some(docker) = daemon.docker() else {
        return Ok(std::fs::remove_dir_all(daemon.data_dir().join("machines").join(id))?);
    };
    docker.said(&["rm", "--force", &format!("sandbank-{id}")])?;
    docker.said(&["volume", "rm", "--force", &format!("sandbank-{id}-workspace")]).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_cgroup_is_noticed() -> anyhow::Result<()> {
    if skip_over_docker("cgroups are Docker's own") {
        return Ok(());
    }
    noticed("runner died", Daemon::Runs, |daemon, id| {
        for group in cgroup_bases(daemon).into_iter().map(|base| base.join(id)) {
            let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            for pid in members.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        for group in cgroup_bases(daemon).into_iter().map(|base| base.join(id)) {
            remove_group(&group);
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmounted_workspace_is_noticed() -> anyhow::Result<()> {
    if skip_over_docker("mounts of a container are Docker's own") {
        return Ok(());
    }
    noticed("workspace", Daemon::Runs, |daemon, id| {
        let pid = runner_pid(daemon, id)?.as_raw_nonzero().to_string();
        // The call itself: umount(8) wants to see its own process, which is not in there.
        let umount2 = if cfg!(target_arch = "aarch64") { 39 } else { 166 };
        let call = format!("exit(syscall({umount2}, $ARGV[0], 2) == 0 ? 0 : 1)");
        let unmount = ["--target", &pid, "--mount", "perl", "-e", &call];
        run("nsenter", &unmount, "/vercel/sandbox/workspace".as_ref())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_workspace_is_noticed() -> anyhow::Result<()> {
    if skip_over_docker("no volume that is in use can be removed") {
        return Ok(());
    }
    noticed("workspace", Daemon::Runs, |daemon, id| {
        let dirs = workspace_dirs(daemon.data_dir());
        let workspace = dirs.iter().map(|dir| dir.join(id)).find(|path| path.exists());
        let workspace = workspace.context("no workspace")?;
        match run("btrfs", &["subvolume", "delete"], &workspace) {
            Ok(()) => Ok(()),
            // Not a subvolume: plain storage.
            Err(_) => Ok(std::fs::remove_dir_all(workspace)?),
        }
    })
    .await
}

/// Empty by now, or its processes are about to leave it: then the daemon removes it.
fn remove_group(group: &std::path::Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}

/// While a part is taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Runs,
    /// It runs, and compares nothing with what there is.
    NeverLooks,
    IsAway,
}

/// Far longer than a test.
const NEVER: [(&str, &str); 2] =
    [("SANDBANK_SWEEP_INTERVAL_MS", "3600000"), ("SANDBANK_TEST_LOSS_INTERVAL_MS", "3600000")];

async fn noticed(
    reason: &str,
    meanwhile: Daemon,
    remove: impl FnOnce(&TestDaemon, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut settings = vec![("SANDBANK_POOL_SIZE", "1")];
    settings.extend(NEVER.iter().filter(|_| meanwhile == Daemon::NeverLooks));
    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let (id, bystander) = (api.create("victim").await?, api.create("bystander").await?);
    let (code, ..) = api.run(&id, "echo before > file").await?;
    ensure!(code == 0);
    // The positive control: looking for losses takes nobody who is whole.
    let whole = agree(&daemon, &api).await?;
    ensure!(whole.len() == 2, "{whole:?}");
    match meanwhile {
        Daemon::Runs | Daemon::NeverLooks => remove(&daemon, &id)?,
        Daemon::IsAway => {
            daemon.kill_9()?;
            remove(&daemon, &id)?;
            daemon.launch().await?;
        }
    }

    // From when it was done, not from when Docker was asked to.
    let begun = Instant::now();
    let telling = eventually("the loss to be told", NOTICED, || gone(&api, &id));
    let answer = timeout(NOTICED, telling).await.context("a call waits for the dead")??;
    println!("{reason:?} was told after {:?}", begun.elapsed());
    let told = answer.to_string();
    ensure!(told.contains(reason), "no {reason:?} in {told}");
    ensure!(agree(&daemon, &api).await?.into_iter().eq([bystander.clone()]), "rows or remains");
    let route = format!("/v1/sandboxes/{id}/post-mortem");
    let post_mortem = api.call("GET", &route, None).await?;
    let kind = post_mortem["cause"]["kind"].as_str().unwrap_or_default();
    ensure!(matches!(kind, "runner_died" | "lost"), "{post_mortem}");
    let fresh = api.create("victim").await?;
    ensure!(fresh != id && api.run(&fresh, "true").await?.0 == 0, "the key is of no use");
    ensure!(api.run(&bystander, "true").await?.0 == 0, "the bystander suffered");
    daemon.finish().await
}

/// The refusal of the next call, if it is one. This dialect says 404 for what has ended.
async fn gone(api: &Api, id: &str) -> Option<Value> {
    let body = serde_json::json!({ "argv": ["true"], "detached": true });
    let route = format!("/v1/sandboxes/{id}/commands");
    let (status, answer) = api.try_call("POST", &route, Some(body)).await.ok()?;
    (matches!(status, 404 | 409 | 410) && answer["code"] == "gone").then_some(answer)
}
