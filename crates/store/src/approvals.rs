//! Table `approvals`: what somebody wants to do, and what a person decided about it.

use std::str::FromStr;

use serde_json::Value;

use crate::StoreError;
use crate::column::{from_json, from_u64, parsed, to_json, to_u64};
use crate::open::Inner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Approve,
    Deny,
}

impl Decision {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

impl FromStr for Decision {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "approve" => Self::Approve,
            "deny" => Self::Deny,
            _ => return Err("a decision is approve or deny"),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRow {
    pub id: String,
    pub request: Value,
    /// Whose token it was asked with; none of a question from before that was kept.
    pub asked_by: Option<String>,
    pub created_at_ms: u64,
    /// Nobody can decide after it.
    pub expires_at_ms: u64,
    /// None while nobody has decided.
    pub decided: Option<Decided>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub decision: Decision,
    pub reason: Option<String>,
    /// Whose token it was.
    pub by: String,
    pub at_ms: u64,
}

pub struct Approvals<'a> {
    pub(crate) db: &'a Inner,
}

const COLUMNS: &str = "id, request, status, reason, decided_by, created_at_ms, decided_at_ms, \
                       asked_by, expires_at_ms";

type Raw =
    (String, String, String, Option<String>, Option<String>, i64, Option<i64>, Option<String>, i64);

/// A question, as it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub id: &'a str,
    pub request: &'a Value,
    pub asked_by: &'a str,
    pub now_ms: u64,
    pub expires_at_ms: u64,
}

/// Who decides what nobody decided.
pub const DEADLINE: &str = "deadline";

impl Approvals<'_> {
    /// Keeps the newest `keep` that are decided, beside all that are not.
    pub async fn insert(&self, question: Question<'_>, keep: usize) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO approvals (id, request, status, created_at_ms, asked_by, expires_at_ms)
             VALUES (?, ?, 'pending', ?, ?, ?)",
        )
        .bind(question.id)
        .bind(to_json(question.request))
        .bind(from_u64(question.now_ms))
        .bind(question.asked_by)
        .bind(from_u64(question.expires_at_ms))
        .execute(&self.db.writer);
        insert.await.map_err(|error| self.db.failed(error))?;
        let prune = sqlx::query(
            "DELETE FROM approvals WHERE status <> 'pending' AND id NOT IN (
                 SELECT id FROM approvals WHERE status <> 'pending'
                 ORDER BY created_at_ms DESC, id LIMIT ?)",
        )
        .bind(from_u64(keep as u64))
        .execute(&self.db.writer);
        prune.await.map(drop).map_err(|error| self.db.failed(error))
    }

    /// Denies what nobody decided in time. Writes only where there is something to write.
    pub async fn expire(&self, now_ms: u64) -> Result<(), StoreError> {
        let overdue: Option<(i64,)> = sqlx::query_as(
            "SELECT 1 FROM approvals WHERE status = 'pending' AND expires_at_ms <= ? LIMIT 1",
        )
        .bind(from_u64(now_ms))
        .fetch_optional(&self.db.reader)
        .await
        .map_err(|error| self.db.failed(error))?;
        if overdue.is_none() {
            return Ok(());
        }
        sqlx::query(
            "UPDATE approvals SET status = 'deny', reason = 'nobody decided in time',
                 decided_by = ?, decided_at_ms = expires_at_ms
             WHERE status = 'pending' AND expires_at_ms <= ?",
        )
        .bind(DEADLINE)
        .bind(from_u64(now_ms))
        .execute(&self.db.writer)
        .await
        .map(drop)
        .map_err(|error| self.db.failed(error))
    }

    pub async fn find(&self, id: &str) -> Result<Option<ApprovalRow>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM approvals WHERE id = ?");
        let row: Option<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(id)
            .fetch_optional(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        row.map(read).transpose()
    }

    /// Undecided ones, oldest first.
    pub async fn pending(&self) -> Result<Vec<ApprovalRow>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM approvals WHERE status = 'pending' ORDER BY created_at_ms, id"
        );
        let rows: Vec<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .fetch_all(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        rows.into_iter().map(read).collect()
    }

    /// False when there is none, it was decided before, or its time is over: the first decision stays.
    pub async fn decide(&self, id: &str, decided: &Decided) -> Result<bool, StoreError> {
        sqlx::query(
            "UPDATE approvals SET status = ?, reason = ?, decided_by = ?, decided_at_ms = ?
             WHERE id = ? AND status = 'pending' AND expires_at_ms > ?",
        )
        .bind(decided.decision.as_str())
        .bind(&decided.reason)
        .bind(&decided.by)
        .bind(from_u64(decided.at_ms))
        .bind(id)
        .bind(from_u64(decided.at_ms))
        .execute(&self.db.writer)
        .await
        .map(|done| done.rows_affected() == 1)
        .map_err(|error| self.db.failed(error))
    }

    /// False when there is none.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        sqlx::query("DELETE FROM approvals WHERE id = ?")
            .bind(id)
            .execute(&self.db.writer)
            .await
            .map(|done| done.rows_affected() == 1)
            .map_err(|error| self.db.failed(error))
    }
}

fn read(row: Raw) -> Result<ApprovalRow, StoreError> {
    let (id, request, status, reason, by, created_at_ms, at_ms, asked_by, expires_at_ms) = row;
    let decided = match status.as_str() {
        "pending" => None,
        status => Some(Decided {
            decision: parsed(status, &id, "status")?,
            reason,
            by: by.unwrap_or_default(),
            at_ms: to_u64(at_ms.unwrap_or_default()),
        }),
    };
    let request = from_json(&request, &id, "request")?;
    let (created_at_ms, expires_at_ms) = (to_u64(created_at_ms), to_u64(expires_at_ms));
    Ok(ApprovalRow { id, request, asked_by, created_at_ms, expires_at_ms, decided })
}
