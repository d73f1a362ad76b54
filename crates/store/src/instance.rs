//! The one row that names this data directory.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sandbank_engine::InstanceId;
use sqlx::SqlitePool;

use crate::{StoreError, column};

pub(crate) async fn read_or_make(
    path: &Path,
    writer: &SqlitePool,
) -> Result<InstanceId, StoreError> {
    let failed = |error| StoreError::from_sqlx(path, error);
    sqlx::query(
        "INSERT INTO instance (only_row, instance_id, created_at_ms) VALUES (1, ?, ?)
         ON CONFLICT DO NOTHING",
    )
    .bind(InstanceId::random().as_str().to_owned())
    .bind(column::from_u64(now_ms()))
    .execute(writer)
    .await
    .map_err(failed)?;
    let text: String = sqlx::query_scalar("SELECT instance_id FROM instance")
        .fetch_one(writer)
        .await
        .map_err(failed)?;
    column::parsed(&text, "the instance", "instance_id")
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
