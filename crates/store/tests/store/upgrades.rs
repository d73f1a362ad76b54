//! Databases of every schema that shipped, opened by this version: brought up to date, with all
//! that was in them. A new migration adds the fixture of the schema before it to the list.

use std::path::Path;

use sandbank_engine::{NetworkMode, SandboxId};
use sandbank_store::{ApprovalOutcome, Decision, RowState, SCHEMA_VERSION, Store};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

/// By schema, from 1 on.
const SHIPPED: [&str; 7] = [
    include_str!("fixtures/schema-1.sql"),
    include_str!("fixtures/schema-2.sql"),
    include_str!("fixtures/schema-3.sql"),
    include_str!("fixtures/schema-4.sql"),
    include_str!("fixtures/schema-5.sql"),
    include_str!("fixtures/schema-6.sql"),
    include_str!("fixtures/schema-7.sql"),
];

#[tokio::test]
async fn every_schema_that_shipped_is_upgraded_with_its_data() {
    assert!(SHIPPED.len() as i64 >= SCHEMA_VERSION, "the schema before the newest has no fixture");
    for (index, fixture) in SHIPPED.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sandbank.db");
        load(&path, fixture).await;
        let store = Store::open(&path).await.unwrap();
        holds_everything(&store, index + 1).await;
        store.close().await;
        assert_eq!(schema(&path).await, fresh_schema().await, "schema {}", index + 1);
        // And again, as after a restart.
        holds_everything(&Store::open(&path).await.unwrap(), index + 1).await;
    }
}

async fn holds_everything(store: &Store, schema: usize) {
    assert_eq!(store.instance_id().as_str(), "iabcdefgh");
    let open = store.sandboxes().open().await.unwrap();
    assert_eq!(open.len(), 1);
    let row = &open[0];
    assert_eq!((row.key.as_str(), row.state), ("chat:1", RowState::Running));
    assert_eq!(
        (row.network, row.ports.as_slice()),
        (NetworkMode::Default, [3000, 8080].as_slice())
    );
    assert_eq!(row.limits.disk_bytes, Some(8 << 30));
    let workspace = row.workspace.as_ref().map(ToString::to_string);
    assert_eq!(workspace.as_deref(), (schema >= 2).then_some("project"));
    assert_eq!((row.lease.idle_ttl_ms, row.lease.commands), (900_000, 2));
    assert_eq!(row.lease.last_active.boot_ms, 5000);
    assert_eq!(row.lease.ends_at.unwrap().wall_ms, 1_700_003_600_000);
    let ports = store.ports().of(&row.id).await.unwrap();
    assert_eq!(ports.iter().map(|p| (p.port, p.host_port)).collect::<Vec<_>>(), [(3000, 40123)]);

    let dead: SandboxId = "sbbbbbbbbbbbbbbbbb".parse().unwrap();
    let closed = store.sandboxes().find(&dead).await.unwrap().unwrap();
    assert_eq!((closed.state, closed.closed_at_ms), (RowState::Failed, Some(1_700_000_009_000)));
    assert_eq!(closed.cause.unwrap()["death"]["signal"], 9);
    let post_mortem = store.post_mortems().find(&dead).await.unwrap().unwrap();
    assert_eq!(post_mortem.body["cause"]["kind"], "runner_died");
    let events = store.events().after(0).await.unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [7]);
    let tokens = store.tokens().list().await.unwrap();
    assert!(tokens.len() == 1 && tokens[0].name == "ci" && tokens[0].revoked_at_ms.is_none());
    let asked = store.approvals().find("a-1").await.unwrap();
    let (by, until) =
        asked.as_ref().map_or((None, 0), |row| (row.asked_by.as_deref(), row.expires_at_ms));
    assert_eq!(by, (schema >= 5).then_some("ann"));
    assert_eq!(until, if schema >= 3 { 1_700_003_600_000 } else { 0 });
    let decided = asked.and_then(|row| row.decided);
    assert_eq!(decided.map(|decided| decided.decision), (schema >= 3).then_some(Decision::Deny));
    let active = store.sandbox_records().active().await.unwrap().map(|record| record.id);
    assert_eq!(active.as_deref(), (schema >= 4).then_some("r-1"));
    let waiting = store.tool_approvals().find("t-1").await.unwrap().map(|row| row.outcome);
    assert_eq!(waiting, (schema >= 6).then_some(ApprovalOutcome::Waiting));
    let chat = store.chat_settings().find("chat-1").await.unwrap();
    assert_eq!(chat.map(|row| row.chosen), (schema >= 7).then(|| json!({ "model": "opus" })));
}

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn load(path: &Path, script: &'static str) {
    let mut connection = connect(path).await;
    sqlx::raw_sql(script).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// What the database is made of, without how its text is laid out.
async fn schema(path: &Path) -> Vec<String> {
    let mut connection = connect(path).await;
    let query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
    let parts: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    parts.iter().map(|sql| sql.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

async fn fresh_schema() -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbank.db");
    Store::open(&path).await.unwrap().close().await;
    schema(&path).await
}
