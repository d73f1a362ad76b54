//! Table `tool_approvals`: calls of tools that were stopped or asked about, and what became of them.

use std::str::FromStr;

use serde_json::Value;

use crate::StoreError;
use crate::column::{from_json, from_u64, parsed, to_json, to_u64};
use crate::limits::MAX_ENDED_INPUT_CHARS;
use crate::open::Inner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalOutcome {
    Waiting,
    Allowed,
    Denied,
    /// Nobody decided in time.
    Expired,
    /// Whoever called no longer wants it.
    Withdrawn,
    /// The daemon ended while it waited.
    Abandoned,
}

impl ApprovalOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Abandoned => "abandoned",
        }
    }
}

impl FromStr for ApprovalOutcome {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        use ApprovalOutcome::{Abandoned, Allowed, Denied, Expired, Waiting, Withdrawn};
        let all = [Waiting, Allowed, Denied, Expired, Withdrawn, Abandoned];
        all.into_iter().find(|outcome| outcome.as_str() == text).ok_or("there is no such outcome")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolApprovalRow {
    pub id: String,
    pub session: String,
    pub tool: String,
    pub input: Value,
    pub digest: String,
    pub rule: String,
    pub outcome: ApprovalOutcome,
    pub decided_by: Option<String>,
    pub asked_at_ms: u64,
    pub deadline_ms: u64,
    pub decided_at_ms: Option<u64>,
}

pub struct ToolApprovals<'a> {
    pub(crate) db: &'a Inner,
}

const COLUMNS: &str = "id, session, tool, input, digest, rule, outcome, decided_by, asked_at_ms, \
                       deadline_ms, decided_at_ms";

type Raw =
    (String, String, String, String, String, String, String, Option<String>, i64, i64, Option<i64>);

impl ToolApprovals<'_> {
    /// Keeps the newest `keep` that do not wait, beside all that do; of those that do not wait, only the
    /// beginning of a long input.
    pub async fn insert(&self, row: &ToolApprovalRow, keep: usize) -> Result<(), StoreError> {
        let insert =
            format!("INSERT INTO tool_approvals ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)");
        sqlx::query(sqlx::AssertSqlSafe(insert))
            .bind(&row.id)
            .bind(&row.session)
            .bind(&row.tool)
            .bind(to_json(&row.input))
            .bind(&row.digest)
            .bind(&row.rule)
            .bind(row.outcome.as_str())
            .bind(&row.decided_by)
            .bind(from_u64(row.asked_at_ms))
            .bind(from_u64(row.deadline_ms))
            .bind(row.decided_at_ms.map(from_u64))
            .execute(&self.db.writer)
            .await
            .map_err(|error| self.db.failed(error))?;
        if row.outcome != ApprovalOutcome::Waiting {
            let clip = format!("UPDATE tool_approvals SET input = {} WHERE id = ?", clipped());
            sqlx::query(sqlx::AssertSqlSafe(clip))
                .bind(&row.id)
                .execute(&self.db.writer)
                .await
                .map_err(|error| self.db.failed(error))?;
        }
        sqlx::query(
            "DELETE FROM tool_approvals WHERE outcome <> 'waiting' AND id NOT IN (
                 SELECT id FROM tool_approvals WHERE outcome <> 'waiting'
                 ORDER BY asked_at_ms DESC, id LIMIT ?)",
        )
        .bind(from_u64(keep as u64))
        .execute(&self.db.writer)
        .await
        .map(drop)
        .map_err(|error| self.db.failed(error))
    }

    pub async fn find(&self, id: &str) -> Result<Option<ToolApprovalRow>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM tool_approvals WHERE id = ?");
        // Of the writer, for it is asked right after a change.
        let row: Option<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(id)
            .fetch_optional(&self.db.writer)
            .await
            .map_err(|error| self.db.failed(error))?;
        row.map(read).transpose()
    }

    /// Those that wait first, then the newest.
    pub async fn list(&self, limit: usize) -> Result<Vec<ToolApprovalRow>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM tool_approvals
             ORDER BY outcome <> 'waiting', asked_at_ms DESC, id LIMIT ?"
        );
        let rows: Vec<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(from_u64(limit as u64))
            .fetch_all(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        rows.into_iter().map(read).collect()
    }

    /// False when there is none that waits: the first end stays.
    pub async fn end(
        &self,
        id: &str,
        outcome: ApprovalOutcome,
        by: &str,
        now_ms: u64,
    ) -> Result<bool, StoreError> {
        let end = format!(
            "UPDATE tool_approvals SET outcome = ?, decided_by = ?, decided_at_ms = ?, input = {}
             WHERE id = ? AND outcome = 'waiting'",
            clipped()
        );
        sqlx::query(sqlx::AssertSqlSafe(end))
            .bind(outcome.as_str())
            .bind(by)
            .bind(from_u64(now_ms))
            .bind(id)
            .execute(&self.db.writer)
            .await
            .map(|done| done.rows_affected() == 1)
            .map_err(|error| self.db.failed(error))
    }

    /// Of an earlier daemon: nobody is there any more who would make the call.
    pub async fn abandon_all(&self, now_ms: u64) -> Result<u64, StoreError> {
        let end = format!(
            "UPDATE tool_approvals SET outcome = 'abandoned', decided_by = 'restart',
             decided_at_ms = ?, input = {} WHERE outcome = 'waiting'",
            clipped()
        );
        sqlx::query(sqlx::AssertSqlSafe(end))
            .bind(from_u64(now_ms))
            .execute(&self.db.writer)
            .await
            .map(|done| done.rows_affected())
            .map_err(|error| self.db.failed(error))
    }
}

/// The input of what has ended: no more than what people recognize it by, for the digest is of the whole.
fn clipped() -> String {
    format!(
        "CASE WHEN length(input) > {MAX_ENDED_INPUT_CHARS}
         THEN json_object('clipped', substr(input, 1, {MAX_ENDED_INPUT_CHARS})) ELSE input END"
    )
}

fn read(row: Raw) -> Result<ToolApprovalRow, StoreError> {
    let (id, session, tool, input, digest, rule, outcome, decided_by, asked, deadline, decided) =
        row;
    Ok(ToolApprovalRow {
        input: from_json(&input, &id, "input")?,
        outcome: parsed(&outcome, &id, "outcome")?,
        id,
        session,
        tool,
        digest,
        rule,
        decided_by,
        asked_at_ms: to_u64(asked),
        deadline_ms: to_u64(deadline),
        decided_at_ms: decided.map(to_u64),
    })
}
