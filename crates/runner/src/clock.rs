//! Wall-clock time as the protocol carries it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in milliseconds; 0 when the clock stands before 1970.
pub(crate) fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
