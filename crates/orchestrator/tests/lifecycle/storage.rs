//! A database that cannot be written.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbank_orchestrator::{Orchestrator, SandboxState};
use sandbank_store::Store;
use sandbank_test_support::{eventually, skip_unless_root};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;

use crate::process_engine::ProcessEngine;
use crate::world::{SOON, request, settings};

/// A small file system for the database alone.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["-t", "tmpfs", "-o", "size=8m,mode=0700", "sandbank-test"];
        let mounted = Command::new("mount").args(arguments).arg(directory.path()).status();
        assert!(mounted.unwrap().success());
        Self(directory)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_newcomers_and_leaves_the_others_alone() {
    if skip_unless_root() {
        return;
    }
    let (disk, engine) = (SmallDisk::mount(), ProcessEngine::new());
    let store = Store::open(&disk.0.path().join("sandbank.db")).await.unwrap();
    let daemon = Orchestrator::start(settings(), engine.clone(), store).await.unwrap();
    let old = daemon.create(request("old")).await.unwrap().id;
    let ballast = disk.0.path().join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    for size in [64 << 10, 4 << 10] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }

    drop(file);

    let newcomers = AtomicUsize::new(0);
    let error = eventually("the database to be full", SOON, || async {
        let number = newcomers.fetch_add(1, Ordering::SeqCst);
        daemon.create(request(&format!("new {number}"))).await.err()
    })
    .await
    .unwrap();
    assert_eq!((error.code(), error.retryable()), ("store_full", true));
    daemon.attach(&old).await.unwrap().stats().await.unwrap();
    assert_eq!(daemon.inspect(&old).await.unwrap().state, SandboxState::Running);

    std::fs::remove_file(&ballast).unwrap();
    eventually("half-made ones to be gone", SOON, || async {
        let known = daemon.list().await.into_iter().map(|info| info.id).collect::<Vec<_>>();
        engine.ids().iter().all(|id| known.contains(id)).then_some(())
    })
    .await
    .unwrap();
    daemon.create(request("after")).await.unwrap();
    assert!(daemon.stop(&old, "the test").await.unwrap());
    daemon.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_database_is_told_as_temporary_and_the_sandboxes_go_on() {
    let (data, engine) = (tempfile::tempdir().unwrap(), ProcessEngine::new());
    let path = data.path().join("sandbank.db");
    let store = Store::open(&path).await.unwrap();
    let daemon = Orchestrator::start(settings(), engine.clone(), store).await.unwrap();
    let old = daemon.create(request("old")).await.unwrap().id;

    let options = SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = daemon.create(request("new")).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("store_locked", true));
    daemon.attach(&old).await.unwrap().stats().await.unwrap();
    let stopping = tokio::spawn({
        let (daemon, old) = (daemon.clone(), old.clone());
        async move { daemon.stop(&old, "the test").await }
    });
    eventually("its machine to be gone all the same", SOON, || async {
        (!engine.ids().contains(&old)).then_some(())
    })
    .await
    .unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert!(stopping.await.unwrap().unwrap());
    daemon.create(request("new")).await.unwrap();
    daemon.shutdown().await;
}
