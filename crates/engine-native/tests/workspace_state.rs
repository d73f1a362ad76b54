//! Repositories and changes of files, as a runner under all of the engine's confinement tells them.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::time::Duration;

use sandbank_channel::{StatusQuery, WatchQuery};
use sandbank_protocol::{GitChange, WatchKind};
use support::{TestEngine, cannot_run};

sandbank_engine_native::spawner_entry!();

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_repositories_are_told_under_confinement() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let id = test.create().await.id;
    let client = test.client(&id).await;
    let query = WatchQuery { path: ".".into(), recursive: true, after: None, exclude: None };
    let mut events = client.watch(&query).await.unwrap();
    let made = test.sh(&id, "mkdir -p a/b && echo x > a/b/file").await;
    assert_eq!(made.code(), Some(0), "{}", made.stderr);
    let told = tokio::time::timeout(PATIENCE, async {
        loop {
            let records = events.next().await.unwrap().expect("it goes on").records;
            if let Some(event) =
                records.into_iter().find(|event| event.path.as_deref() == Some("a/b/file"))
            {
                return event;
            }
        }
    });
    assert_eq!(told.await.unwrap().kind, WatchKind::Created);

    if test.sh(&id, "git --version").await.code() != Some(0) {
        return println!("skipped: the host has no git");
    }
    let made = test.sh(&id, "git init -q . && git add a").await;
    assert_eq!(made.code(), Some(0), "{}", made.stderr);
    let status = client.git_status(&StatusQuery::default()).await.unwrap();
    let entry = status.entries.iter().find(|entry| entry.path == "a/b/file");
    assert_eq!(entry.unwrap().index, GitChange::Added, "{status:?}");
    test.finish().await;
}
