//! Opening the database: checked before it is trusted, then migrated.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbank_engine::InstanceId;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection, SqlitePool};

use crate::claim::Claim;
use crate::limits::{ACQUIRE_TIMEOUT, BUSY_TIMEOUT, READERS};
use crate::{
    Approvals, ChatSettings, Events, Ports, PostMortems, SandboxRecords, Sandboxes, StoreError,
    Tokens, ToolApprovals, instance, migrations,
};

/// The daemon's database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) path: PathBuf,
    /// One connection: SQLite has one writer at a time, and ours wait in line for it.
    pub(crate) writer: SqlitePool,
    pub(crate) reader: SqlitePool,
    pub(crate) instance: InstanceId,
    pub(crate) claim: Claim,
}

impl Store {
    /// Opens the database, making it when it is not there. Nothing is changed in one that is
    /// damaged, newer than this version, or another program's.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        make_private_file(path).map_err(|error| StoreError::from_io(path, &error))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let failed = |error| StoreError::from_sqlx(path, error);
        let writer = pool(1).connect_with(options.clone()).await.map_err(failed)?;
        migrations::run(path, &writer).await?;
        let instance = instance::read_or_make(path, &writer).await?;
        let reader = pool(READERS).connect_lazy_with(options.read_only(true));
        let claim = Claim::beside(path);
        let inner = Inner { path: path.to_owned(), writer, reader, instance, claim };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Names this data directory, the same for its whole life.
    pub fn instance_id(&self) -> &InstanceId {
        &self.inner.instance
    }

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Takes the database for this process alone until [`Store::release`] or its end, so that
    /// two daemons never drive the same sandboxes. Taking it twice is fine.
    pub fn claim(&self) -> Result<(), StoreError> {
        self.inner.claim.take()
    }

    pub fn release(&self) {
        self.inner.claim.release();
    }

    /// Closes every connection, folding the write-ahead log into the database file.
    pub async fn close(&self) {
        self.inner.reader.close().await;
        self.inner.writer.close().await;
        self.release();
    }

    pub fn sandboxes(&self) -> Sandboxes<'_> {
        Sandboxes { db: &self.inner }
    }

    pub fn ports(&self) -> Ports<'_> {
        Ports { db: &self.inner }
    }

    pub fn events(&self) -> Events<'_> {
        Events { db: &self.inner }
    }

    pub fn post_mortems(&self) -> PostMortems<'_> {
        PostMortems { db: &self.inner }
    }

    pub fn tokens(&self) -> Tokens<'_> {
        Tokens { db: &self.inner }
    }

    pub fn sandbox_records(&self) -> SandboxRecords<'_> {
        SandboxRecords { db: &self.inner }
    }

    pub fn approvals(&self) -> Approvals<'_> {
        Approvals { db: &self.inner }
    }

    pub fn chat_settings(&self) -> ChatSettings<'_> {
        ChatSettings { db: &self.inner }
    }

    pub fn tool_approvals(&self) -> ToolApprovals<'_> {
        ToolApprovals { db: &self.inner }
    }
}

impl Inner {
    pub(crate) fn failed(&self, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(&self.path, error)
    }
}

/// Connections are never recycled by age: a database file does not go away and come back.
fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(is_clean(connection)))
}

/// SQLite ends a transaction by itself when the disk is full. sqlx then fails to roll it back and
/// takes the connection for being inside it ever after, so such a connection is not used again.
async fn is_clean(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // A rollback may be on its way; the ping comes after it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// Sandboxes' keys and tokens' hashes are nobody else's business; SQLite gives its side files
/// the mode of the main one. Opening for writing also tells a read-only place by its errno,
/// which SQLite does not pass on.
fn make_private_file(path: &Path) -> std::io::Result<()> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    Ok(())
}
