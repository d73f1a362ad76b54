//! What a store accepts as its file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandbank_store::{SCHEMA_VERSION, Store, StoreError};
use sandbank_test_support::skip_unless_root;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;

use crate::fixture::{SmallDisk, row};

async fn execute(path: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_new_store_is_private_and_keeps_its_instance() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    let store = Store::open(&path).await.unwrap();
    let instance = store.instance_id().clone();
    store.sandboxes().insert(&row("a")).await.unwrap();
    for name in ["sandbank.db", "sandbank.db-wal"] {
        let mode = std::fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    store.close().await;
    let again = Store::open(&path).await.unwrap();
    assert_eq!(again.instance_id(), &instance);
    assert_eq!(again.sandboxes().open().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    Store::open(&path).await.unwrap().close().await;
    execute(&path, "PRAGMA user_version = 4711").await;
    let before = std::fs::read(&path).unwrap();
    match Store::open(&path).await.err().unwrap() {
        StoreError::Newer { found, supported, .. } => {
            assert_eq!((found, supported), (4711, SCHEMA_VERSION));
        }
        other => panic!("{other}"),
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_of_noise_is_refused_as_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    std::fs::write(&path, [0x5a; 9000]).unwrap();
    let error = Store::open(&path).await.err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.hint().unwrap().contains("restore a backup"));
    assert_eq!(std::fs::read(&path).unwrap(), [0x5a; 9000]);
}

#[tokio::test]
async fn a_damaged_page_is_found_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    let store = Store::open(&path).await.unwrap();
    for number in 0..200 {
        store.sandboxes().insert(&row(&format!("key {number}"))).await.unwrap();
    }
    store.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    let (page, middle) = (4096, bytes.len() / 4096 / 2 * 4096);
    bytes[middle..middle + page].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let error = Store::open(&path).await.err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn another_programs_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    execute(&path, "CREATE TABLE precious (data TEXT); INSERT INTO precious VALUES ('x')").await;
    let error = Store::open(&path).await.err().unwrap();
    assert!(error.to_string().contains("another program's"), "{error}");
}

#[tokio::test]
async fn a_missing_directory_is_an_io_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = Store::open(&directory.path().join("no/where.db")).await.err().unwrap();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
}

#[tokio::test]
async fn a_read_only_place_is_named_as_such() {
    if skip_unless_root() {
        return;
    }
    let disk = SmallDisk::mount("4m");
    let (old, new) = (disk.path("old.db"), disk.path("new.db"));
    Store::open(&old).await.unwrap().close().await;
    disk.make_read_only();
    for path in [old, new] {
        let error = Store::open(&path).await.err().unwrap();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_reader_beside_the_daemon_disturbs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    let store = Store::open(&path).await.unwrap();
    store.sandboxes().insert(&row("before")).await.unwrap();
    let options = SqliteConnectOptions::new().filename(&path).read_only(true);
    let mut reader = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let refused = sqlx::raw_sql("DELETE FROM sandboxes").execute(&mut reader).await;
    assert!(refused.is_err());
    store.sandboxes().insert(&row("after")).await.unwrap();
    assert_eq!(store.sandboxes().open().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_claimed_store_is_locked_for_others_until_released() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    let (first, second) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    first.claim().unwrap();
    first.claim().unwrap();
    let error = second.claim().unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.is_temporary());
    first.release();
    second.claim().unwrap();
}
