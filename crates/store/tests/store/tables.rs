//! Each table's own story.

use sandbank_engine::SandboxId;
use sandbank_store::{
    ApprovalOutcome, ChatSettingsRow, DEADLINE, Decided, Decision, Event, LeaseRow, PortRow,
    Question, RecordStatus, RowState, Stamp, Store, StoreError, TokenScope, ToolApprovalRow,
};
use serde_json::json;

use crate::fixture::row;

async fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("sandbank.db")).await.unwrap();
    (directory, store)
}

fn event(seq: u64) -> Event {
    let sandbox = (!seq.is_multiple_of(2)).then(SandboxId::random);
    Event { seq, time_ms: 10 * seq, sandbox, kind: "test".into(), detail: json!({ "n": seq }) }
}

#[tokio::test]
async fn a_sandbox_comes_back_as_it_was_written() {
    let (_directory, store) = store().await;
    let row = row("chat:1");
    store.sandboxes().insert(&row).await.unwrap();
    assert_eq!(store.sandboxes().find(&row.id).await.unwrap(), Some(row.clone()));
    assert_eq!(store.sandboxes().open().await.unwrap(), [row]);
    assert_eq!(store.sandboxes().find(&SandboxId::random()).await.unwrap(), None);
}

#[tokio::test]
async fn states_and_leases_change_apart() {
    let (_directory, store) = store().await;
    let mut row = row("chat:1");
    store.sandboxes().insert(&row).await.unwrap();
    row.state = RowState::Stopping;
    row.cause = Some(json!({ "kind": "evicted" }));
    store.sandboxes().set_state(&row.id, row.state, row.cause.as_ref()).await.unwrap();
    row.lease = LeaseRow {
        idle_ttl_ms: 10_000,
        last_active: Stamp { wall_ms: 7, boot_ms: 8 },
        ends_at: None,
        boot_id: "next".into(),
        commands: 0,
    };
    store.sandboxes().set_lease(&row.id, &row.lease).await.unwrap();
    assert_eq!(store.sandboxes().find(&row.id).await.unwrap(), Some(row));
}

#[tokio::test]
async fn closing_a_row_keeps_a_post_mortem_and_forgets_the_ports() {
    let (_directory, store) = store().await;
    let row = row("chat:1");
    store.sandboxes().insert(&row).await.unwrap();
    store.ports().put(&row.id, PortRow { port: 3000, host_port: 40_000 }).await.unwrap();
    let (cause, body) = (json!({ "kind": "idle_expired" }), json!({ "last_output": "bye" }));
    let rows = store.sandboxes();
    rows.close(&row.id, RowState::Gone, &cause, 99, &body).await.unwrap();
    rows.close(&row.id, RowState::Failed, &json!(null), 100, &json!(null)).await.unwrap();
    let closed = rows.find(&row.id).await.unwrap().unwrap();
    assert_eq!((closed.state, closed.closed_at_ms), (RowState::Gone, Some(99)));
    assert!(rows.open().await.unwrap().is_empty());
    assert_eq!(store.post_mortems().find(&row.id).await.unwrap().unwrap().body, body);
    assert!(store.ports().of(&row.id).await.unwrap().is_empty());
    rows.set_state(&row.id, RowState::Running, None).await.unwrap();
    assert_eq!(rows.find(&row.id).await.unwrap().unwrap().state, RowState::Gone);
}

#[tokio::test]
async fn sandboxes_are_found_by_the_beginning_of_their_key_and_no_other() {
    let (_directory, store) = store().await;
    let keys = ["session:1", "session:\u{10ffff}", "session:é", "session:", "session:%"];
    let others = ["session", "session9", "session;", "Session:1", "sessio_:1", " session:1", "z"];
    for (time, key) in keys.iter().chain(&others).enumerate() {
        let mut row = row(key);
        row.created_at_ms = time as u64;
        store.sandboxes().insert(&row).await.unwrap();
    }
    let found = async |prefix: &str, limit| -> Vec<String> {
        let rows = store.sandboxes().with_key_prefix(prefix, limit).await.unwrap();
        rows.into_iter().map(|row| row.key).collect()
    };
    let newest_first: Vec<_> = keys.iter().rev().copied().collect();
    assert_eq!(found("session:", 100).await, newest_first);
    assert_eq!(found("session:", 2).await, newest_first[..2]);
    assert_eq!(found("session:\u{10ffff}", 100).await, [keys[1]]);
    assert_eq!(found("", 100).await.len(), keys.len() + others.len());
    assert!(found("\u{10ffff}", 100).await.is_empty());
}

#[tokio::test]
async fn only_the_newest_post_mortems_are_kept() {
    let (_directory, store) = store().await;
    let mut ids = Vec::new();
    for ended_at in 0..5 {
        let row = row("chat:1");
        store.sandboxes().insert(&row).await.unwrap();
        let nothing = json!({});
        let rows = store.sandboxes();
        rows.close(&row.id, RowState::Gone, &nothing, ended_at, &nothing).await.unwrap();
        ids.push(row.id);
    }
    let living = row("chat:2");
    store.sandboxes().insert(&living).await.unwrap();
    assert_eq!(store.post_mortems().prune(2).await.unwrap(), 3);
    assert!(store.post_mortems().find(&ids[2]).await.unwrap().is_none());
    assert!(store.post_mortems().find(&ids[3]).await.unwrap().is_some());
    assert_eq!(store.sandboxes().find(&ids[0]).await.unwrap(), None);
    assert!(store.sandboxes().find(&living.id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_port_has_one_host_port() {
    let (_directory, store) = store().await;
    let row = row("chat:1");
    store.sandboxes().insert(&row).await.unwrap();
    for host_port in [40_000, 40_001] {
        store.ports().put(&row.id, PortRow { port: 3000, host_port }).await.unwrap();
    }
    let expected = [PortRow { port: 3000, host_port: 40_001 }];
    assert_eq!(store.ports().of(&row.id).await.unwrap(), expected);
    store.ports().remove(&row.id, 3000).await.unwrap();
    store.ports().remove(&row.id, 3000).await.unwrap();
    assert!(store.ports().of(&row.id).await.unwrap().is_empty());
}

#[tokio::test]
async fn events_are_appended_paged_and_pruned() {
    let (_directory, store) = store().await;
    let events: Vec<_> = (1..=2500).map(event).collect();
    store.events().append(&events).await.unwrap();
    assert_eq!(store.events().last_seq().await.unwrap(), 2500);
    let page = store.events().after(2000).await.unwrap();
    assert_eq!(page, events[2000..]);
    assert_eq!(store.events().after(0).await.unwrap().len(), 1000);
    assert_eq!(store.events().prune(100).await.unwrap(), 2400);
    assert_eq!(store.events().after(0).await.unwrap()[0].seq, 2401);
    assert!(store.events().append(&events[2499..]).await.is_err(), "a number is used once");
}

#[tokio::test]
async fn a_token_is_found_by_its_hash_until_it_is_revoked() {
    let (_directory, store) = store().await;
    let tokens = store.tokens();
    tokens.insert("laptop", TokenScope::Sandbox, [7; 32], 1).await.unwrap();
    let found = tokens.find(&[7; 32]).await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.scope), ("laptop", TokenScope::Sandbox));
    let twice = tokens.insert("laptop", TokenScope::Admin, [8; 32], 2).await.unwrap_err();
    assert!(matches!(twice, StoreError::Exists { .. }), "{twice}");
    assert!(tokens.revoke("laptop", 3).await.unwrap());
    assert!(!tokens.revoke("laptop", 4).await.unwrap());
    assert_eq!(tokens.find(&[7; 32]).await.unwrap(), None);
    tokens.insert("laptop", TokenScope::ReadOnly, [9; 32], 5).await.unwrap();
    let revoked: Vec<_> = tokens.list().await.unwrap().iter().map(|t| t.revoked_at_ms).collect();
    assert_eq!(revoked, [Some(3), None]);
}

#[tokio::test]
async fn a_hand_edited_row_is_an_error_and_no_panic() {
    let (directory, store) = store().await;
    let row = row("chat:1");
    store.sandboxes().insert(&row).await.unwrap();
    let path = directory.path().join("sandbank.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let other = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("UPDATE sandboxes SET limits = 'nonsense'").execute(&other).await.unwrap();
    let error = store.sandboxes().open().await.unwrap_err();
    assert!(matches!(error, StoreError::BadValue { column: "limits", .. }), "{error}");
}

#[tokio::test]
async fn an_approval_is_decided_once_and_pending_ones_are_never_pruned() {
    let (_directory, store) = store().await;
    let approvals = store.approvals();
    let ask = async |id: &str, now_ms| {
        let request = &json!({ "tool_name": id });
        let question =
            Question { id, request, asked_by: "ann", now_ms, expires_at_ms: now_ms + 100 };
        approvals.insert(question, 1).await.unwrap();
    };
    for (id, now) in [("a", 1), ("b", 2), ("c", 3)] {
        ask(id, now).await;
    }
    let decided = |decision, at_ms| Decided {
        decision,
        reason: Some("because".to_owned()),
        by: "admin".to_owned(),
        at_ms,
    };
    assert!(approvals.decide("a", &decided(Decision::Approve, 4)).await.unwrap());
    assert!(!approvals.decide("a", &decided(Decision::Deny, 5)).await.unwrap());
    assert!(!approvals.decide("nobody", &decided(Decision::Deny, 5)).await.unwrap());
    let row = approvals.find("a").await.unwrap().unwrap();
    assert_eq!(
        (row.request, row.decided),
        (json!({ "tool_name": "a" }), Some(decided(Decision::Approve, 4)))
    );
    assert!(approvals.decide("b", &decided(Decision::Deny, 6)).await.unwrap());
    // The newest decided one is kept, and all that wait.
    ask("d", 7).await;
    assert_eq!(approvals.find("a").await.unwrap(), None);
    let pending: Vec<_> =
        approvals.pending().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(pending, ["c", "d"]);
    assert!(approvals.delete("c").await.unwrap() && !approvals.delete("c").await.unwrap());
    // What nobody decides in time is denied, from that moment on.
    let late = decided(Decision::Approve, 107);
    assert!(!approvals.decide("d", &late).await.unwrap(), "its time is over");
    approvals.expire(106).await.unwrap();
    let row = approvals.find("d").await.unwrap().unwrap();
    assert_eq!((row.asked_by.as_deref(), row.decided), (Some("ann"), None), "not yet");
    approvals.expire(107).await.unwrap();
    let denied = approvals.find("d").await.unwrap().unwrap().decided.unwrap();
    assert_eq!((denied.decision, &*denied.by, denied.at_ms), (Decision::Deny, DEADLINE, 107));
}

#[tokio::test]
async fn one_sandbox_record_is_active_at_most_and_stopped_ones_make_room() {
    let (_directory, store) = store().await;
    let records = store.sandbox_records();
    for (id, now) in [("a", 1), ("b", 2)] {
        assert!(records.insert(id, &json!({ "name": id }), now, 2).await.unwrap());
    }
    assert_eq!(records.active().await.unwrap().unwrap().id, "a");
    assert!(!records.insert("c", &json!({}), 3, 2).await.unwrap(), "neither has been stopped");
    assert!(!records.activate("nobody").await.unwrap());
    assert_eq!(records.active().await.unwrap().unwrap().id, "a");
    assert!(records.activate("b").await.unwrap());
    assert!(records.start("b", 4).await.unwrap() && !records.start("nobody", 4).await.unwrap());
    let row = records.find("b").await.unwrap().unwrap();
    assert!(row.active && row.status == RecordStatus::Running, "{row:?}");
    assert_eq!((row.started_at_ms, row.updated_at_ms, row.stopped_at_ms), (Some(4), 4, None));
    assert!(records.stop("b", 5).await.unwrap());
    assert_eq!(records.active().await.unwrap(), None);
    assert!(records.insert("c", &json!({}), 6, 2).await.unwrap());
    let ids: Vec<_> = records.list().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, ["a", "c"]);
    assert_eq!(records.active().await.unwrap().unwrap().id, "c");
}

fn asked(id: &str, at: u64) -> ToolApprovalRow {
    ToolApprovalRow {
        id: id.to_owned(),
        session: "chat:1".to_owned(),
        tool: "bash".to_owned(),
        input: json!({ "command": "ls" }),
        digest: "d".to_owned(),
        rule: "rule 1".to_owned(),
        outcome: ApprovalOutcome::Waiting,
        decided_by: None,
        asked_at_ms: at,
        deadline_ms: at + 10,
        decided_at_ms: None,
    }
}

#[tokio::test]
async fn a_call_that_waits_ends_once_and_a_restart_ends_all_that_still_wait() {
    let (_directory, store) = store().await;
    let rows = store.tool_approvals();
    for (id, at) in [("a", 1), ("b", 2), ("c", 3)] {
        rows.insert(&asked(id, at), 1).await.unwrap();
    }
    assert_eq!(rows.find("a").await.unwrap().unwrap(), asked("a", 1));
    assert!(rows.end("a", ApprovalOutcome::Allowed, "alice", 4).await.unwrap());
    assert!(!rows.end("a", ApprovalOutcome::Denied, "bob", 5).await.unwrap());
    assert!(!rows.end("nobody", ApprovalOutcome::Denied, "bob", 5).await.unwrap());
    let ended = rows.find("a").await.unwrap().unwrap();
    assert_eq!(
        (ended.outcome, ended.decided_by.as_deref(), ended.decided_at_ms),
        (ApprovalOutcome::Allowed, Some("alice"), Some(4))
    );
    let ids = |rows: Vec<ToolApprovalRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(rows.list(10).await.unwrap()), ["c", "b", "a"]);
    assert!(rows.end("b", ApprovalOutcome::Expired, "deadline", 6).await.unwrap());
    // The newest that has ended is kept, and all that wait.
    rows.insert(&asked("d", 7), 1).await.unwrap();
    assert_eq!(ids(rows.list(10).await.unwrap()), ["d", "c", "b"]);
    assert_eq!(rows.abandon_all(8).await.unwrap(), 2);
    assert_eq!(rows.find("d").await.unwrap().unwrap().outcome, ApprovalOutcome::Abandoned);
}

#[tokio::test]
async fn settings_of_the_chats_that_were_set_last_are_kept() {
    let (_directory, store) = store().await;
    let rows = store.chat_settings();
    let row = |chat: &str, model: &str| ChatSettingsRow {
        chat: chat.to_owned(),
        asked: json!({ "model": null }),
        chosen: json!({ "model": model }),
    };
    for chat in ["a", "b"] {
        rows.set(&row(chat, "opus"), 2).await.unwrap();
    }
    rows.set(&row("a", "haiku"), 2).await.unwrap();
    rows.set(&row("c", "opus"), 2).await.unwrap();
    assert_eq!(rows.find("a").await.unwrap(), Some(row("a", "haiku")), "set again since");
    assert_eq!(rows.find("b").await.unwrap(), None, "set longest ago");
    assert_eq!(rows.find("c").await.unwrap(), Some(row("c", "opus")));
    rows.forget("a").await.unwrap();
    assert_eq!(rows.find("a").await.unwrap(), None);
}
