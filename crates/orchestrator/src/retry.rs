//! Getting hold of a sandbox again after its channel broke. The runner keeps everything, so
//! whoever knows where they were can go on.

use std::time::Duration;

use crate::limits::{MAX_RECONNECTS, RECONNECT_PAUSE};

/// A bounded number of tries with growing pauses.
pub struct Retry {
    left: u32,
    pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { left: MAX_RECONNECTS, pause: RECONNECT_PAUSE }
    }
}

impl Retry {
    /// Whether there was a try since it was made.
    pub fn is_used(&self) -> bool {
        self.left < MAX_RECONNECTS
    }

    /// Waits before the next try; false when there is none left.
    pub async fn again(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.left -= 1;
        self.pause *= 2;
        true
    }
}
