//! No space left: an error that says so, nothing half-written, and recovery.

use std::io::Write;

use sandbank_store::{Event, RowState, Store, StoreError};
use sandbank_test_support::skip_unless_root;
use serde_json::json;

use crate::fixture::{SmallDisk, row};

#[tokio::test]
async fn a_full_disk_is_told_and_survived() {
    if skip_unless_root() {
        return;
    }
    let disk = SmallDisk::mount("8m");
    let store = Store::open(&disk.path("sandbank.db")).await.unwrap();
    let first = row("before");
    store.sandboxes().insert(&first).await.unwrap();
    fill(&disk);

    let mut written = 1;
    let error = loop {
        match store.sandboxes().insert(&row("while")).await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100_000, "the disk never filled up");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.is_temporary());
    assert_eq!(store.sandboxes().open().await.unwrap().len(), written, "reads go on");
    let told: Vec<_> = (1..=400).map(event).collect();
    let error = store.events().append(&told).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    let refused = Store::open(&disk.path("other.db")).await.err().unwrap();
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");

    std::fs::remove_file(disk.path("ballast")).unwrap();
    let nothing = json!({});
    let rows = store.sandboxes();
    store.events().append(&told).await.unwrap();
    rows.close(&first.id, RowState::Gone, &nothing, 1, &nothing).await.unwrap();
    rows.insert(&row("after")).await.unwrap();
    assert_eq!(rows.open().await.unwrap().len(), written);
    store.close().await;
    let again = Store::open(&disk.path("sandbank.db")).await.unwrap();
    assert_eq!(again.sandboxes().open().await.unwrap().len(), written, "and the file is sound");
}

fn event(seq: u64) -> Event {
    let detail = json!({ "text": "x".repeat(1000) });
    Event { seq, time_ms: 0, sandbox: None, kind: "test".to_owned(), detail }
}

/// Leaves a few kilobytes, so that the next writes hit the end.
fn fill(disk: &SmallDisk) {
    let mut ballast = std::fs::File::create(disk.path("ballast")).unwrap();
    for size in [64 << 10, 4 << 10] {
        while ballast.write_all(&vec![1; size]).is_ok() {}
    }
}
