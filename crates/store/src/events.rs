//! Table `events`: what happened, in order, append-only. Old ones are pruned from the front.

use sandbank_engine::SandboxId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{QueryBuilder, Sqlite};

use crate::StoreError;
use crate::column::{from_json, from_u64, parsed, to_json, to_u64};
use crate::limits::EVENTS_PER_PAGE;
use crate::open::Inner;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Grows by one per event, never reused.
    pub seq: u64,
    /// Unix time in milliseconds.
    pub time_ms: u64,
    pub sandbox: Option<SandboxId>,
    /// `sandbox.created`, `port.published`, …
    pub kind: String,
    pub detail: Value,
}

pub struct Events<'a> {
    pub(crate) db: &'a Inner,
}

impl Events<'_> {
    /// Adds all or none. The caller numbers them, so that they can be told before they are kept.
    pub async fn append(&self, events: &[Event]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        // One statement is all or nothing by itself, and one turn of the database's thread.
        let mut insert = QueryBuilder::<Sqlite>::new(
            "INSERT INTO events (seq, time_ms, sandbox_id, kind, detail) ",
        );
        insert.push_values(events, |mut row, event| {
            row.push_bind(from_u64(event.seq))
                .push_bind(from_u64(event.time_ms))
                .push_bind(event.sandbox.as_ref().map(SandboxId::as_str))
                .push_bind(&event.kind)
                .push_bind(to_json(&event.detail));
        });
        let insert = insert.build().persistent(events.len() == 1);
        insert.execute(&self.db.writer).await.map(drop).map_err(|error| self.db.failed(error))
    }

    /// Events numbered above `after`, oldest first, a page at a time.
    pub async fn after(&self, after: u64) -> Result<Vec<Event>, StoreError> {
        type Raw = (i64, i64, Option<String>, String, String);
        let rows: Vec<Raw> = sqlx::query_as(
            "SELECT seq, time_ms, sandbox_id, kind, detail FROM events
             WHERE seq > ? ORDER BY seq LIMIT ?",
        )
        .bind(from_u64(after))
        .bind(EVENTS_PER_PAGE)
        .fetch_all(&self.db.reader)
        .await
        .map_err(|error| self.db.failed(error))?;
        rows.into_iter()
            .map(|(seq, time_ms, sandbox, kind, detail)| {
                let row = format!("event {seq}");
                let sandbox = sandbox.map(|id| parsed(&id, &row, "sandbox_id")).transpose()?;
                let detail = from_json(&detail, &row, "detail")?;
                Ok(Event { seq: to_u64(seq), time_ms: to_u64(time_ms), sandbox, kind, detail })
            })
            .collect()
    }

    /// The newest number, 0 when there is none.
    pub async fn last_seq(&self) -> Result<u64, StoreError> {
        sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM events")
            .fetch_one(&self.db.reader)
            .await
            .map(to_u64)
            .map_err(|error| self.db.failed(error))
    }

    /// Keeps the newest `keep` events; says how many were removed.
    pub async fn prune(&self, keep: u64) -> Result<u64, StoreError> {
        sqlx::query("DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?")
            .bind(from_u64(keep))
            .execute(&self.db.writer)
            .await
            .map(|done| done.rows_affected())
            .map_err(|error| self.db.failed(error))
    }
}
