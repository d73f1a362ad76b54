//! Bounds of the store, and what happens at each.

use std::time::Duration;

/// How long SQLite waits for another process's lock; then the call fails with `Locked`.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a call waits for a connection of ours; then it fails with `Locked`.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that only read. More readers wait their turn.
pub(crate) const READERS: u32 = 2;

/// Events read by one call; the caller asks again for what follows.
pub(crate) const EVENTS_PER_PAGE: i64 = 1000;

/// Of the input of a tool's call that is no longer asked about; of a longer one the beginning is kept.
pub(crate) const MAX_ENDED_INPUT_CHARS: usize = 2048;
