//! Kept workspaces, with real machines.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use sandbank_engine::{Engine, EngineError, Machine, MachineState, WorkspaceId, WorkspaceInfo};
use sandbank_engine_native::StorageKind;
use support::{TestEngine, cannot_run};

sandbank_engine_native::spawner_entry!();

const MIB: u64 = 1 << 20;

fn id(name: &str) -> WorkspaceId {
    name.parse().unwrap()
}

async fn with(test: &TestEngine, workspace: &str) -> Machine {
    test.create_with(|spec| spec.workspace = Some(id(workspace))).await
}

async fn info(test: &TestEngine, workspace: &str) -> WorkspaceInfo {
    let infos = test.engine.workspaces().await.unwrap();
    infos.into_iter().find(|info| info.id == id(workspace)).expect("it is there")
}

async fn says(test: &TestEngine, machine: &Machine, script: &str) -> String {
    let output = test.sh(&machine.id, script).await;
    assert_eq!(output.code(), Some(0), "{script}: {}", output.stderr);
    output.stdout
}

/// On the host, for plain storage.
fn place(test: &TestEngine, workspace: &str) -> PathBuf {
    test.settings.data_dir.join("workspaces-kept").join(workspace)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_workspace_outlives_its_machines_and_the_daemon() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let first = with(&test, "project").await;
    assert!(first.made_workspace);
    says(&test, &first, "mkdir -p a/b; echo kept > a/b/file; head -c 300000 /dev/zero > big").await;
    let seen = info(&test, "project").await;
    assert_eq!((seen.quota_bytes, seen.in_use_by), (None, vec![first.id.clone()]));
    assert!(seen.bytes >= 300_000, "{} bytes", seen.bytes);
    assert_eq!(test.engine.stats(&first.id).await.unwrap().disk_bytes, seen.bytes);

    let test = test.restart().await;
    let users = info(&test, "project").await.in_use_by;
    assert_eq!(users, std::slice::from_ref(&first.id), "its record says so");
    assert_eq!(test.engine.list().await.unwrap()[0].state, MachineState::Running);
    assert_eq!(says(&test, &first, "cat a/b/file").await, "kept\n");
    test.engine.destroy(&first.id).await.unwrap();
    assert_eq!(info(&test, "project").await.in_use_by, []);

    let second = with(&test, "project").await;
    assert!(!second.made_workspace);
    assert_eq!(says(&test, &second, "cat a/b/file").await, "kept\n");
    let own = test.create().await;
    assert_eq!(says(&test, &own, "ls").await, "", "whoever names none has one of its own");
    test.engine.destroy(&second.id).await.unwrap();
    assert!(test.engine.remove_workspace(&id("project")).await.unwrap());
    assert!(!test.engine.remove_workspace(&id("project")).await.unwrap());
    let third = with(&test, "project").await;
    assert_eq!(says(&test, &third, "ls").await, "", "a new one of the name is empty");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_share_one_and_see_the_same_owners() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let (one, two) = (with(&test, "project").await, with(&test, "project").await);
    says(&test, &one, "echo one > file; mkdir dir").await;
    let seen = says(&test, &two, "cat file; stat -c %u:%g . file dir; echo two >> file").await;
    assert_eq!(seen, "one\n1000:1000\n1000:1000\n1000:1000\n");
    says(&test, &two, "echo deep > dir/file; chmod 600 dir/file").await;
    let seen = says(&test, &one, "cat file dir/file; stat -c %u:%g dir/file; rm dir/file").await;
    assert_eq!(seen, "one\ntwo\ndeep\n1000:1000\n");
    let on_disk = std::fs::metadata(place(&test, "project").join("file")).unwrap();
    assert_eq!((on_disk.uid(), on_disk.gid()), (1000, 1000), "no machine's own ids");
    assert_eq!(info(&test, "project").await.in_use_by.len(), 2);
    test.engine.destroy(&one.id).await.unwrap();
    assert_eq!(says(&test, &two, "cat file").await, "one\ntwo\n", "the other goes on");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_quota_of_those_who_have_it_holds_for_all() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start_with(|settings| {
        settings.storage = StorageKind::Auto;
        settings.pool_bytes = 1 << 30;
    })
    .await;
    if !test.engine.capabilities().disk_quota {
        println!("skipped: this host has no btrfs, so nothing can enforce a quota");
        return test.finish().await;
    }
    let holding = |bytes: u64| {
        test.create_with(move |spec| {
            spec.workspace = Some(id("project"));
            spec.limits.disk_bytes = Some(bytes);
        })
    };
    let small = holding(32 * MIB).await;
    let large = holding(64 * MIB).await;
    assert_eq!(info(&test, "project").await.quota_bytes, Some(32 * MIB));
    says(&test, &small, "head -c 20000000 /dev/urandom > one; sync").await;
    let output = test.sh(&large.id, "head -c 20000000 /dev/urandom > two; sync; wc -c < two").await;
    let written: u64 = output.stdout.trim().parse().unwrap();
    assert!(written < 20_000_000, "both together stay within the quota: {}", output.stderr);
    let (used, of) = (test.engine.stats(&small.id), test.engine.stats(&large.id));
    let (used, of) = (used.await.unwrap().disk_bytes, of.await.unwrap().disk_bytes);
    assert!(used == of && (20_000_000..=32 * MIB).contains(&used), "{used} and {of}");

    test.engine.destroy(&small.id).await.unwrap();
    assert_eq!(
        info(&test, "project").await.quota_bytes,
        Some(64 * MIB),
        "who is gone asks nothing"
    );
    let another = holding(64 * MIB).await;
    assert_eq!(info(&test, "project").await.quota_bytes, Some(64 * MIB));
    says(&test, &another, "head -c 20000000 /dev/urandom > two; sync; wc -c < one").await;
    for machine in [&large, &another] {
        test.engine.destroy(&machine.id).await.unwrap();
    }
    assert!(test.engine.remove_workspace(&id("project")).await.unwrap());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_in_use_is_not_removed_even_after_a_restart() {
    if cannot_run() {
        return;
    }
    let mut test = TestEngine::start().await;
    let machine = with(&test, "project").await;
    says(&test, &machine, "echo kept > file").await;
    for _ in 0..2 {
        let refused = test.engine.remove_workspace(&id("project")).await.unwrap_err();
        let EngineError::WorkspaceInUse { by, .. } = refused else { panic!("{refused}") };
        assert_eq!(by, std::slice::from_ref(&machine.id));
        test = test.restart().await;
    }
    assert_eq!(says(&test, &machine, "cat file").await, "kept\n");
    test.engine.destroy(&machine.id).await.unwrap();
    assert!(test.engine.remove_workspace(&id("project")).await.unwrap());
    assert!(!place(&test, "project").exists());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_and_removals_that_cross_leave_no_machine_without_its_workspace() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let engine = Arc::clone(&test.engine);
    let removing = tokio::spawn(async move {
        let (mut removed, mut refused) = (0, 0);
        while removed + refused < 2000 && removed < 8 {
            match engine.remove_workspace(&id("project")).await {
                Ok(true) => removed += 1,
                Err(EngineError::WorkspaceInUse { .. }) => refused += 1,
                other => assert!(matches!(other, Ok(false)), "{other:?}"),
            }
            tokio::task::yield_now().await;
        }
        (removed, refused)
    });
    let mut lives = 0;
    while !removing.is_finished() {
        assert!(lives < 200, "nothing was ever removed");
        let machine = with(&test, "project").await;
        assert_eq!(says(&test, &machine, "echo x > file; cat file").await, "x\n");
        assert!(place(&test, "project").join("file").exists(), "it is the one of that name");
        test.engine.destroy(&machine.id).await.unwrap();
        lives += 1;
        tokio::task::yield_now().await;
    }
    println!("{lives} lives, (removed, refused) {:?}", removing.await.unwrap());
    test.finish().await;
}

/// As when somebody tidies up on the host; losing sight of all of them says nothing about one.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_kept_workspace_is_taken_away_is_dead() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = with(&test, "project").await;
    let state = async || test.engine.list().await.unwrap()[0].state;
    assert_eq!(state().await, MachineState::Running);
    let (root, elsewhere) =
        (place(&test, "project").parent().unwrap().to_owned(), test.settings.data_dir.join("away"));
    std::fs::rename(&root, &elsewhere).unwrap();
    assert_eq!(state().await, MachineState::Running, "all are out of sight");
    std::fs::rename(&elsewhere, &root).unwrap();
    std::fs::remove_dir_all(place(&test, "project")).unwrap();
    assert_eq!(state().await, MachineState::Dead);
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_in_a_kept_workspace_lead_nobody_to_the_host() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "the host's").unwrap();
    let (dir, file) = (outside.path().display(), secret.display());
    let writer = with(&test, "project").await;
    let links = format!(
        "ln -s {dir} dir; ln -s {file} file; ln -s / root; ln -s ../../../../../../../{file} up; \
         ln -s /proc/1/root proc; echo plain > plain; ln -s plain good"
    );
    says(&test, &writer, &links).await;
    let reader = with(&test, "project").await;
    assert_eq!(says(&test, &reader, "cat good").await, "plain\n", "links do work");
    let paths = ["file", "up", "dir/secret", "root/PATH", "proc/PATH"]
        .map(|p| p.replace("/PATH", &file.to_string()));
    for path in &paths {
        let output = test.sh(&reader.id, &format!("cat {path}; echo x > {path}")).await;
        assert!(!output.stdout.contains("the host's"), "{path} led outside");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the host's");
    // Nor does the workspace itself become one.
    let own = "w=$(pwd); cd /; rmdir $w; mv -T $w /tmp/w; ln -sfT / $w; test ! -L $w";
    assert_eq!(test.sh(&reader.id, own).await.code(), Some(0));
    assert!(std::fs::symlink_metadata(place(&test, "project")).unwrap().is_dir());
    info(&test, "project").await;
    for machine in [&writer, &reader] {
        test.engine.destroy(&machine.id).await.unwrap();
    }
    assert!(test.engine.remove_workspace(&id("project")).await.unwrap());
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the host's", "removal follows none");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_name_is_no_workspace() {
    let spec = serde_json::to_value(support::spec()).unwrap();
    let named = |name: &str| {
        let mut spec = spec.clone();
        spec["workspace"] = name.into();
        serde_json::from_value::<sandbank_engine::MachineSpec>(spec)
    };
    assert_eq!(named("project").unwrap().workspace, Some(id("project")));
    for bad in ["../machines", "/etc", "..", ".hidden", "a/b", "a\0b", "A", "x", ""] {
        assert!(named(bad).is_err(), "{bad:?}");
    }
}
