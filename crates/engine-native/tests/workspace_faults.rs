//! Kept workspaces of a daemon that is killed at any step of an engine's work. The test runs itself
//! again as that daemon.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use sandbank_engine::{Engine, InstanceId, MachineSpec, WorkspaceId};
use sandbank_engine_native::{NativeSettings, StorageKind};
use sandbank_fault_points::{Owner, Point, Stage};
use support::{TestEngine, cannot_run, spec, started};

sandbank_engine_native::spawner_entry!();

const TEST: &str = "a_daemon_killed_at_any_step_leaves_kept_workspaces_whole";
const DATA: &str = "SANDBANK_TEST_DATA";
const INSTANCE: &str = "SANDBANK_TEST_INSTANCE";
const STORAGE: &str = "SANDBANK_TEST_STORAGE";
const POOL_BYTES: u64 = 512 << 20;

fn id(name: &str) -> WorkspaceId {
    name.parse().unwrap()
}

fn with(workspace: &str) -> MachineSpec {
    MachineSpec { workspace: Some(id(workspace)), ..spec() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_at_any_step_leaves_kept_workspaces_whole() {
    if cannot_run() {
        return;
    }
    if let Ok(data) = std::env::var(DATA) {
        return live_and_die(&data).await;
    }
    for point in Point::ALL {
        // The others are reached by the tests of whose they are.
        if point.owner() != Owner::Native {
            continue;
        }
        cut_short(*point, StorageKind::Plain).await;
        if matches!(point.stage(), Stage::Keep | Stage::Remove) {
            cut_short(*point, StorageKind::Auto).await;
        }
    }
}

/// The daemon that dies: every step there is, until the one it was told.
async fn live_and_die(data: &str) {
    let instance: InstanceId = std::env::var(INSTANCE).unwrap().parse().unwrap();
    let mut settings = NativeSettings::new(data, instance);
    settings.storage = match std::env::var(STORAGE).unwrap().as_str() {
        "plain" => StorageKind::Plain,
        _ => StorageKind::Auto,
    };
    settings.pool_bytes = POOL_BYTES;
    settings.networks_ready = 1;
    let engine = started(&settings).await;
    sandbank_fault_points::arm();
    let user = with("old");
    engine.create(&user).await.unwrap();
    engine.create(&with("new")).await.unwrap();
    engine.destroy(&user.id).await.unwrap();
    engine.remove_workspace(&id("spare")).await.unwrap();
    panic!("it was never reached");
}

async fn cut_short(point: Point, storage: StorageKind) {
    let name = point.name();
    println!("{name} on {storage:?}");
    let test = TestEngine::start_with(|settings| {
        settings.storage = storage;
        settings.pool_bytes = POOL_BYTES;
        settings.networks_ready = 1;
    })
    .await;
    for workspace in ["old", "spare"] {
        let machine = test.engine.create(&with(workspace)).await.unwrap();
        let output = test.sh(&machine.id, "mkdir dir; echo whole > dir/file; sync").await;
        assert_eq!(output.code(), Some(0), "{}", output.stderr);
        test.engine.destroy(&machine.id).await.unwrap();
    }
    let test = test
        .restart_after(|settings| {
            let status = Command::new(std::env::current_exe().unwrap())
                .args([TEST, "--exact", "--nocapture"])
                .env(DATA, &settings.data_dir)
                .env(INSTANCE, settings.instance.as_str())
                .env(STORAGE, if storage == StorageKind::Plain { "plain" } else { "auto" })
                .env("SANDBANK_FAULT", format!("{name}:kill"))
                .status()
                .unwrap();
            assert_eq!(status.signal(), Some(9), "{name}: {status}");
        })
        .await;
    for machine in test.engine.list().await.unwrap() {
        test.engine.destroy(&machine.id).await.unwrap();
    }
    let left = test.engine.workspaces().await.unwrap();
    assert!(left.iter().all(|info| info.in_use_by.is_empty()), "{name}: {left:?}");
    let names: Vec<_> = left.iter().map(|info| info.id.as_str()).collect();
    assert!(names.contains(&"old"), "{name}: {names:?}");
    // Removed as soon as it has lost its name, and not a step before.
    assert_eq!(!names.contains(&"spare"), point.stage() == Stage::Remove, "{name}: {names:?}");
    assert_eq!(leftovers(&test.settings), Vec::<String>::new(), "{name}");
    for (workspace, seen) in [("old", "whole\n"), ("new", "")] {
        let machine = test.engine.create(&with(workspace)).await.unwrap();
        let output = test.sh(&machine.id, "touch new; cat dir/file 2>/dev/null; true").await;
        assert_eq!((output.stdout.as_str(), output.code()), (seen, Some(0)), "{name}");
        test.engine.destroy(&machine.id).await.unwrap();
    }
    test.finish().await;
}

/// What nobody can name.
fn leftovers(settings: &NativeSettings) -> Vec<String> {
    let roots = ["workspaces-kept", "subvolumes-kept", "pool/subvolumes-kept"];
    let entries =
        roots.into_iter().flat_map(|root| std::fs::read_dir(settings.data_dir.join(root)));
    let names = entries.flatten().flatten().map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}
