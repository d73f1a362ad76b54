//! Every bound of this crate, and what happens at it.

use std::time::Duration;

/// Spans that wait to be sent; the next one is dropped.
pub(crate) const MAX_WAITING: usize = 2_048;

/// Spans sent at once.
pub(crate) const MAX_BATCH: usize = 512;

/// How often they are sent.
pub(crate) const EXPORT_INTERVAL: Duration = Duration::from_secs(1);

/// How long a collector may take for a batch; then the batch is lost.
pub(crate) const EXPORT_PATIENCE: Duration = Duration::from_secs(5);

/// How long the daemon's end may be held up by the last ones.
pub(crate) const LAST_EXPORT_PATIENCE: Duration = Duration::from_secs(2);

/// Largest answer read from a collector; a longer one is a failure.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 << 10;
