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
    pub created_at_ms: u64,
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

const COLUMNS: &str = "id, request, status, reason, decided_by, created_at_ms, decided_at_ms";

type Raw = (String, String, String, Option<String>, Option<String>, i64, Option<i64>);

impl Approvals<'_> {
    /// Keeps the newest `keep` that are decided, beside all that are not.
    pub async fn insert(
        &self,
        id: &str,
        request: &Value,
        now_ms: u64,
        keep: usize,
    ) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO approvals (id, request, status, created_at_ms) VALUES (?, ?, 'pending', ?)",
        )
        .bind(id)
        .bind(to_json(request))
        .bind(from_u64(now_ms))
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

    /// False when there is none, or it was decided before: the first decision stays.
    pub async fn decide(&self, id: &str, decided: &Decided) -> Result<bool, StoreError> {
        sqlx::query(
            "UPDATE approvals SET status = ?, reason = ?, decided_by = ?, decided_at_ms = ?
             WHERE id = ? AND status = 'pending'",
        )
        .bind(decided.decision.as_str())
        .bind(&decided.reason)
        .bind(&decided.by)
        .bind(from_u64(decided.at_ms))
        .bind(id)
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
    let (id, request, status, reason, by, created_at_ms, at_ms) = row;
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
    Ok(ApprovalRow { id, request, created_at_ms: to_u64(created_at_ms), decided })
}
