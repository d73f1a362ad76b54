//! Table `sandbox_records`: what a workspace's UI notes about sandboxes, and which one it uses.

use std::str::FromStr;

use serde_json::Value;

use crate::StoreError;
use crate::column::{from_json, from_u64, parsed, to_json, to_u64};
use crate::open::Inner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordStatus {
    Pending,
    Running,
    Stopped,
}

impl RecordStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

impl FromStr for RecordStatus {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "pending" => Self::Pending,
            "running" => Self::Running,
            "stopped" => Self::Stopped,
            _ => return Err("a record is pending, running or stopped"),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SandboxRecord {
    pub id: String,
    pub request: Value,
    pub status: RecordStatus,
    pub active: bool,
    pub created_at_ms: u64,
    pub updated_at_ms: u64,
    pub started_at_ms: Option<u64>,
    pub stopped_at_ms: Option<u64>,
}

pub struct SandboxRecords<'a> {
    pub(crate) db: &'a Inner,
}

const COLUMNS: &str = "id, request, status, active IS NOT NULL, created_at_ms, updated_at_ms, started_at_ms, \
     stopped_at_ms";

type Raw = (String, String, String, bool, i64, i64, Option<i64>, Option<i64>);

impl SandboxRecords<'_> {
    /// The first one is active. To stay within `keep`, the oldest stopped ones are forgotten; false
    /// where that is not enough, and then nothing is kept.
    pub async fn insert(
        &self,
        id: &str,
        request: &Value,
        now_ms: u64,
        keep: usize,
    ) -> Result<bool, StoreError> {
        let insert = async {
            let mut transaction = self.db.writer.begin_with("BEGIN IMMEDIATE").await?;
            sqlx::query(
                "DELETE FROM sandbox_records WHERE id IN (
                     SELECT id FROM sandbox_records WHERE status = 'stopped' AND active IS NULL
                     ORDER BY created_at_ms, id
                     LIMIT max(0, (SELECT count(*) FROM sandbox_records) + 1 - ?))",
            )
            .bind(from_u64(keep as u64))
            .execute(&mut *transaction)
            .await?;
            let inserted = sqlx::query(
                "INSERT INTO sandbox_records (id, request, status, active, created_at_ms, updated_at_ms)
                 SELECT ?1, ?2, 'pending',
                     CASE WHEN EXISTS (SELECT 1 FROM sandbox_records WHERE active = 1) THEN NULL ELSE 1 END,
                     ?3, ?3
                 WHERE (SELECT count(*) FROM sandbox_records) < ?4",
            )
            .bind(id)
            .bind(to_json(request))
            .bind(from_u64(now_ms))
            .bind(from_u64(keep as u64))
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(inserted.rows_affected() == 1)
        };
        insert.await.map_err(|error| self.db.failed(error))
    }

    /// Oldest first.
    pub async fn list(&self) -> Result<Vec<SandboxRecord>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM sandbox_records ORDER BY created_at_ms, rowid");
        let rows: Vec<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .fetch_all(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        rows.into_iter().map(read).collect()
    }

    pub async fn find(&self, id: &str) -> Result<Option<SandboxRecord>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM sandbox_records WHERE id = ?");
        let row: Option<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(id)
            .fetch_optional(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        row.map(read).transpose()
    }

    pub async fn active(&self) -> Result<Option<SandboxRecord>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM sandbox_records WHERE active = 1");
        let row: Option<Raw> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .fetch_optional(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        row.map(read).transpose()
    }

    /// False when there is none, and then the active one stays.
    pub async fn activate(&self, id: &str) -> Result<bool, StoreError> {
        let activate = async {
            let mut transaction = self.db.writer.begin_with("BEGIN IMMEDIATE").await?;
            sqlx::query(
                "UPDATE sandbox_records SET active = NULL
                 WHERE active = 1 AND EXISTS (SELECT 1 FROM sandbox_records WHERE id = ?)",
            )
            .bind(id)
            .execute(&mut *transaction)
            .await?;
            let activated = sqlx::query("UPDATE sandbox_records SET active = 1 WHERE id = ?")
                .bind(id)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(activated.rows_affected() == 1)
        };
        activate.await.map_err(|error| self.db.failed(error))
    }

    /// False when there is none.
    pub async fn start(&self, id: &str, now_ms: u64) -> Result<bool, StoreError> {
        let query = "UPDATE sandbox_records
             SET status = 'running', started_at_ms = ?1, updated_at_ms = ?1 WHERE id = ?2";
        self.change(query, id, now_ms).await
    }

    /// False when there is none. One that is stopped is not active.
    pub async fn stop(&self, id: &str, now_ms: u64) -> Result<bool, StoreError> {
        let query = "UPDATE sandbox_records
             SET status = 'stopped', active = NULL, stopped_at_ms = ?1, updated_at_ms = ?1 WHERE id = ?2";
        self.change(query, id, now_ms).await
    }

    async fn change(&self, query: &'static str, id: &str, now_ms: u64) -> Result<bool, StoreError> {
        sqlx::query(query)
            .bind(from_u64(now_ms))
            .bind(id)
            .execute(&self.db.writer)
            .await
            .map(|done| done.rows_affected() == 1)
            .map_err(|error| self.db.failed(error))
    }
}

fn read(row: Raw) -> Result<SandboxRecord, StoreError> {
    let (id, request, status, active, created, updated, started, stopped) = row;
    Ok(SandboxRecord {
        request: from_json(&request, &id, "request")?,
        status: parsed(&status, &id, "status")?,
        active,
        created_at_ms: to_u64(created),
        updated_at_ms: to_u64(updated),
        started_at_ms: started.map(to_u64),
        stopped_at_ms: stopped.map(to_u64),
        id,
    })
}
