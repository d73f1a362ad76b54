//! Many writers at once, in one process and from beside it.

use std::time::Duration;

use sandbank_store::{Store, StoreError};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;

use crate::fixture::row;

const WRITES: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    let stores = [Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap()];
    let mut writers = tokio::task::JoinSet::new();
    for store in stores.iter().cycle().take(8) {
        let store = store.clone();
        writers.spawn(async move {
            for number in 0..WRITES {
                store.sandboxes().insert(&row(&format!("key {number}"))).await.unwrap();
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    assert_eq!(stores[0].sandboxes().open().await.unwrap().len(), 8 * WRITES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_held_by_another_process_is_waited_for_and_then_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    let store = Store::open(&path).await.unwrap();
    let options = SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::SqliteConnection::connect_with(&options).await.unwrap();

    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = store.sandboxes().insert(&row("locked out")).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.is_temporary());

    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.sandboxes().insert(&row("patient")).await }
    });
    let in_line = tokio::time::timeout(Duration::from_millis(200), async {
        while !waiting.is_finished() {
            tokio::task::yield_now().await;
        }
    });
    assert!(in_line.await.is_err(), "it waits for the lock");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(store.sandboxes().open().await.unwrap().len(), 1);
}
