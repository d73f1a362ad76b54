//! Table `sandboxes`: every sandbox that lives, and the dead ones whose post-mortem is kept.
//!
//! A row is written before its machine is made and closed after it is destroyed, so an open row
//! always says that there may be something in the engine. Environment variables are not stored.

use std::str::FromStr;

use sandbank_engine::{ImageName, Limits, NetworkMode, SandboxId, WorkspaceId};
use serde_json::Value;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::StoreError;
use crate::column::{bad, from_json, from_u64, parsed, to_json, to_u64};
use crate::open::Inner;

/// A moment on both clocks, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Since the Unix epoch.
    pub wall_ms: u64,
    /// Since the machine started, negative for what was before; nobody can set this clock.
    pub boot_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    Creating,
    Running,
    Paused,
    Stopping,
    Gone,
    Failed,
}

impl RowState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Gone => "gone",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for RowState {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "creating" => Self::Creating,
            "running" => Self::Running,
            "paused" => Self::Paused,
            "stopping" => Self::Stopping,
            "gone" => Self::Gone,
            "failed" => Self::Failed,
            _ => return Err("unknown state"),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    pub id: SandboxId,
    pub key: String,
    pub state: RowState,
    /// Why it is ending or has ended.
    pub cause: Option<Value>,
    pub engine: String,
    pub image: ImageName,
    pub runtime: String,
    pub network: NetworkMode,
    pub limits: Limits,
    /// Ports that may be published.
    pub ports: Vec<u16>,
    /// The kept workspace it has, if not one of its own.
    pub workspace: Option<WorkspaceId>,
    /// Wall clock.
    pub created_at_ms: u64,
    pub lease: LeaseRow,
    /// Wall clock; set once the machine is destroyed.
    pub closed_at_ms: Option<u64>,
}

/// How long a sandbox may live: the part of a row that changes often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    pub idle_ttl_ms: u64,
    /// The last moment somebody used it; idle expiry is this plus the TTL.
    pub last_active: Stamp,
    /// The end of its absolute lifetime.
    pub ends_at: Option<Stamp>,
    /// The boot that the boot times belong to.
    pub boot_id: String,
    /// Running commands as last seen; a paused sandbox cannot be asked.
    pub commands: u64,
}

/// Ranges, so that the index of keys serves.
const KEYS_FROM_TO: &str = "SELECT * FROM sandboxes WHERE key >= ? AND key < ?
     ORDER BY created_at_ms DESC, id DESC LIMIT ?";
const KEYS_FROM: &str = "SELECT * FROM sandboxes WHERE key >= ?
     ORDER BY created_at_ms DESC, id DESC LIMIT ?";

/// The first text after all that begin with `prefix`, in the order of code points, which is that of
/// their bytes; none when nothing comes after them.
fn successor(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // The range leaves out what is no character.
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

pub struct Sandboxes<'a> {
    pub(crate) db: &'a Inner,
}

impl Sandboxes<'_> {
    /// The intent: written before the engine is asked for a machine.
    pub async fn insert(&self, row: &SandboxRow) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO sandboxes (id, key, state, cause, engine, image, runtime, network,
                 limits, ports, created_at_ms, idle_ttl_ms, last_active_wall_ms,
                 last_active_boot_ms, ends_at_wall_ms, ends_at_boot_ms, boot_id, commands,
                 closed_at_ms, workspace)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(row.id.as_str())
        .bind(&row.key)
        .bind(row.state.as_str())
        .bind(row.cause.as_ref().map(to_json))
        .bind(&row.engine)
        .bind(row.image.as_str())
        .bind(&row.runtime)
        .bind(to_json(&row.network))
        .bind(to_json(&row.limits))
        .bind(to_json(&row.ports))
        .bind(from_u64(row.created_at_ms))
        .bind(from_u64(row.lease.idle_ttl_ms))
        .bind(from_u64(row.lease.last_active.wall_ms))
        .bind(row.lease.last_active.boot_ms)
        .bind(row.lease.ends_at.map(|at| from_u64(at.wall_ms)))
        .bind(row.lease.ends_at.map(|at| at.boot_ms))
        .bind(&row.lease.boot_id)
        .bind(from_u64(row.lease.commands))
        .bind(row.closed_at_ms.map(from_u64))
        .bind(row.workspace.as_ref().map(WorkspaceId::as_str))
        .execute(&self.db.writer)
        .await
        .map(drop)
        .map_err(|error| self.db.failed(error))
    }

    /// Records a change of an open row's state, with the cause once it is ending.
    pub async fn set_state(
        &self,
        id: &SandboxId,
        state: RowState,
        cause: Option<&Value>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE sandboxes SET state = ?, cause = ? WHERE id = ? AND closed_at_ms IS NULL",
        )
        .bind(state.as_str())
        .bind(cause.map(to_json))
        .bind(id.as_str())
        .execute(&self.db.writer)
        .await
        .map(drop)
        .map_err(|error| self.db.failed(error))
    }

    pub async fn set_lease(&self, id: &SandboxId, lease: &LeaseRow) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE sandboxes SET idle_ttl_ms = ?, last_active_wall_ms = ?,
                 last_active_boot_ms = ?, ends_at_wall_ms = ?, ends_at_boot_ms = ?, boot_id = ?,
                 commands = ?
             WHERE id = ? AND closed_at_ms IS NULL",
        )
        .bind(from_u64(lease.idle_ttl_ms))
        .bind(from_u64(lease.last_active.wall_ms))
        .bind(lease.last_active.boot_ms)
        .bind(lease.ends_at.map(|at| from_u64(at.wall_ms)))
        .bind(lease.ends_at.map(|at| at.boot_ms))
        .bind(&lease.boot_id)
        .bind(from_u64(lease.commands))
        .bind(id.as_str())
        .execute(&self.db.writer)
        .await
        .map(drop)
        .map_err(|error| self.db.failed(error))
    }

    /// The result of an end: the row is closed, its post-mortem kept and its ports forgotten, all
    /// or nothing. Closing a closed row changes nothing.
    pub async fn close(
        &self,
        id: &SandboxId,
        state: RowState,
        cause: &Value,
        at_ms: u64,
        post_mortem: &Value,
    ) -> Result<(), StoreError> {
        let change = async {
            let mut transaction = self.db.writer.begin_with("BEGIN IMMEDIATE").await?;
            // Statements of one query are one turn of the database's thread.
            sqlx::query(
                "UPDATE sandboxes SET state = ?, cause = ?, closed_at_ms = ?
                     WHERE id = ? AND closed_at_ms IS NULL;
                 INSERT OR REPLACE INTO post_mortems (sandbox_id, ended_at_ms, body)
                     SELECT ?, ?, ? WHERE changes() = 1;
                 DELETE FROM ports WHERE sandbox_id = ?",
            )
            .bind(state.as_str())
            .bind(to_json(cause))
            .bind(from_u64(at_ms))
            .bind(id.as_str())
            .bind(id.as_str())
            .bind(from_u64(at_ms))
            .bind(to_json(post_mortem))
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        change.await.map_err(|error| self.db.failed(error))
    }

    /// Rows that may have something in the engine, oldest first.
    pub async fn open(&self) -> Result<Vec<SandboxRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM sandboxes WHERE closed_at_ms IS NULL ORDER BY created_at_ms, id",
        )
        .fetch_all(&self.db.reader)
        .await
        .map_err(|error| self.db.failed(error))?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    pub async fn find(&self, id: &SandboxId) -> Result<Option<SandboxRow>, StoreError> {
        let row = sqlx::query("SELECT * FROM sandboxes WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Of those with this key, the one that was made last.
    pub async fn newest_with_key(&self, key: &str) -> Result<Option<SandboxRow>, StoreError> {
        let row = sqlx::query(
            "SELECT * FROM sandboxes WHERE key = ? ORDER BY created_at_ms DESC, id DESC LIMIT 1",
        )
        .bind(key)
        .fetch_optional(&self.db.reader)
        .await
        .map_err(|error| self.db.failed(error))?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Open and closed ones whose key begins so, newest first.
    pub async fn with_key_prefix(
        &self,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<SandboxRow>, StoreError> {
        let end = successor(prefix);
        let query = match &end {
            Some(end) => sqlx::query(KEYS_FROM_TO).bind(prefix).bind(end),
            None => sqlx::query(KEYS_FROM).bind(prefix),
        };
        let rows = query
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    fn read(&self, row: &SqliteRow) -> Result<SandboxRow, StoreError> {
        let id: String = self.get(row, "id")?;
        let text = |column| self.get::<String>(row, column);
        let number = |column| self.get::<i64>(row, column).map(to_u64);
        let maybe = |column| Ok(self.get::<Option<i64>>(row, column)?.map(to_u64));
        let ends_at_boot_ms: Option<i64> = self.get(row, "ends_at_boot_ms")?;
        let ends_at = match (maybe("ends_at_wall_ms")?, ends_at_boot_ms) {
            (Some(wall_ms), Some(boot_ms)) => Some(Stamp { wall_ms, boot_ms }),
            (None, None) => None,
            _ => return Err(bad(&id, "ends_at_wall_ms", "only one of the two clocks is set")),
        };
        let cause = self.get::<Option<String>>(row, "cause")?;
        let workspace = self.get::<Option<String>>(row, "workspace")?;
        Ok(SandboxRow {
            key: text("key")?,
            state: parsed(&text("state")?, &id, "state")?,
            cause: cause.map(|cause| from_json(&cause, &id, "cause")).transpose()?,
            engine: text("engine")?,
            image: parsed(&text("image")?, &id, "image")?,
            runtime: text("runtime")?,
            network: from_json(&text("network")?, &id, "network")?,
            limits: from_json(&text("limits")?, &id, "limits")?,
            ports: from_json(&text("ports")?, &id, "ports")?,
            workspace: workspace.map(|name| parsed(&name, &id, "workspace")).transpose()?,
            created_at_ms: number("created_at_ms")?,
            lease: LeaseRow {
                idle_ttl_ms: number("idle_ttl_ms")?,
                last_active: Stamp {
                    wall_ms: number("last_active_wall_ms")?,
                    boot_ms: self.get(row, "last_active_boot_ms")?,
                },
                ends_at,
                boot_id: text("boot_id")?,
                commands: number("commands")?,
            },
            closed_at_ms: maybe("closed_at_ms")?,
            id: parsed(&id, &id, "id")?,
        })
    }

    fn get<'r, T>(&self, row: &'r SqliteRow, column: &str) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        row.try_get(column).map_err(|error| self.db.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn the_successor_is_after_all_that_begin_so_and_before_the_rest() {
        assert_eq!(successor("session:").as_deref(), Some("session;"));
        assert_eq!(successor("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(successor("a\u{10ffff}\u{10ffff}").as_deref(), Some("b"));
        assert_eq!((successor("\u{10ffff}"), successor("")), (None, None));
    }

    #[tokio::test]
    async fn the_index_of_keys_serves_a_prefix() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).await.unwrap();
        for (query, bounds) in [(KEYS_FROM_TO, "key>? AND key<?"), (KEYS_FROM, "key>?")] {
            let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
            let plan = sqlx::query(explain).fetch_all(&store.inner.reader).await.unwrap();
            let words: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
            let index = format!("SEARCH sandboxes USING INDEX sandboxes_by_key ({bounds})");
            assert!(words.contains(&index), "{words:?}");
        }
    }
}
