//! Table `ports`: which host port each published port of a live sandbox has, so that it is the
//! same after a restart of the daemon.

use sandbank_engine::SandboxId;

use crate::StoreError;
use crate::column::bad;
use crate::open::Inner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRow {
    /// In the sandbox.
    pub port: u16,
    pub host_port: u16,
}

pub struct Ports<'a> {
    pub(crate) db: &'a Inner,
}

impl Ports<'_> {
    pub async fn put(&self, id: &SandboxId, row: PortRow) -> Result<(), StoreError> {
        sqlx::query("INSERT OR REPLACE INTO ports (sandbox_id, port, host_port) VALUES (?, ?, ?)")
            .bind(id.as_str())
            .bind(i64::from(row.port))
            .bind(i64::from(row.host_port))
            .execute(&self.db.writer)
            .await
            .map(drop)
            .map_err(|error| self.db.failed(error))
    }

    pub async fn remove(&self, id: &SandboxId, port: u16) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM ports WHERE sandbox_id = ? AND port = ?")
            .bind(id.as_str())
            .bind(i64::from(port))
            .execute(&self.db.writer)
            .await
            .map(drop)
            .map_err(|error| self.db.failed(error))
    }

    /// Of all sandboxes.
    pub async fn host_ports(&self) -> Result<Vec<u16>, StoreError> {
        let ports: Vec<i64> = sqlx::query_scalar("SELECT host_port FROM ports")
            .fetch_all(&self.db.reader)
            .await
            .map_err(|error| self.db.failed(error))?;
        let port = |port| u16::try_from(port).map_err(|error| bad("a port", "host_port", error));
        ports.into_iter().map(port).collect()
    }

    pub async fn of(&self, id: &SandboxId) -> Result<Vec<PortRow>, StoreError> {
        let rows: Vec<(i64, i64)> =
            sqlx::query_as("SELECT port, host_port FROM ports WHERE sandbox_id = ? ORDER BY port")
                .bind(id.as_str())
                .fetch_all(&self.db.reader)
                .await
                .map_err(|error| self.db.failed(error))?;
        rows.into_iter().map(|row| read(id, row)).collect()
    }
}

fn read(id: &SandboxId, (port, host_port): (i64, i64)) -> Result<PortRow, StoreError> {
    let number = |value, column| {
        u16::try_from(value).map_err(|error| bad(&format!("a port of {id}"), column, error))
    };
    Ok(PortRow { port: number(port, "port")?, host_port: number(host_port, "host_port")? })
}
