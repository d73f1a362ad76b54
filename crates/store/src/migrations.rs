//! The schema's history, embedded. `user_version` counts the migrations that were applied, and
//! `application_id` tells our database from another program's.

use std::path::Path;

use sqlx::{Row, SqlitePool};

use crate::StoreError;

/// Applied in order, each once, each in a transaction of its own. Never edit one that shipped.
const MIGRATIONS: [&str; 7] = [
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_workspaces.sql"),
    include_str!("../migrations/0003_approvals.sql"),
    include_str!("../migrations/0004_sandbox_records.sql"),
    include_str!("../migrations/0005_approval_deadlines.sql"),
    include_str!("../migrations/0006_tool_approvals.sql"),
    include_str!("../migrations/0007_chat_settings.sql"),
];

/// The schema that this version reads and writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// "sbnk".
const APPLICATION_ID: i64 = 0x7362_6e6b;

pub(crate) async fn run(path: &Path, writer: &SqlitePool) -> Result<(), StoreError> {
    check_integrity(path, writer).await?;
    let found = pragma(path, writer, "PRAGMA user_version").await?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found, supported: SCHEMA_VERSION });
    }
    check_ownership(path, writer).await?;
    for version in found.max(0)..SCHEMA_VERSION {
        apply(path, writer, version).await?;
    }
    Ok(())
}

async fn apply(path: &Path, writer: &SqlitePool, version: i64) -> Result<(), StoreError> {
    let script = MIGRATIONS[usize::try_from(version).expect("versions start at 0")];
    let mark =
        format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};", version + 1);
    let migrate = async {
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::raw_sql(script).execute(&mut *transaction).await?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(mark)).execute(&mut *transaction).await?;
        transaction.commit().await
    };
    migrate.await.map_err(|error| StoreError::from_sqlx(path, error))
}

async fn check_integrity(path: &Path, writer: &SqlitePool) -> Result<(), StoreError> {
    let row = sqlx::query("PRAGMA quick_check(1)")
        .fetch_one(writer)
        .await
        .map_err(|error| StoreError::from_sqlx(path, error))?;
    match row.try_get::<String, _>(0) {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(answer) => Err(StoreError::Corrupt { path: path.to_owned(), reason: answer }),
        Err(error) => Err(StoreError::from_sqlx(path, error)),
    }
}

/// A file with tables in it that we did not make is refused rather than built upon.
async fn check_ownership(path: &Path, writer: &SqlitePool) -> Result<(), StoreError> {
    let ours = pragma(path, writer, "PRAGMA application_id").await? == APPLICATION_ID;
    let tables = pragma(path, writer, "SELECT count(*) FROM sqlite_schema").await?;
    if ours || tables == 0 {
        return Ok(());
    }
    let reason = "it is another program's database".to_owned();
    Err(StoreError::Corrupt { path: path.to_owned(), reason })
}

async fn pragma(path: &Path, writer: &SqlitePool, sql: &'static str) -> Result<i64, StoreError> {
    sqlx::query_scalar(sql)
        .fetch_one(writer)
        .await
        .map_err(|error| StoreError::from_sqlx(path, error))
}
