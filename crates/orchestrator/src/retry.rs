//! Getting hold of a sandbox again after its channel broke. The runner keeps everything, so
//! whoever knows where they were can go on.

use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{MAX_RECONNECTS, RECONNECT_PAUSE};

/// A bounded number of tries with growing pauses.
pub struct Retry {
    left: u32,
    pause: Duration,
    /// When the pause is over that somebody waits for, or waited for and went away.
    next_at: Option<Instant>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { left: MAX_RECONNECTS, pause: RECONNECT_PAUSE, next_at: None }
    }
}

impl Retry {
    /// Whether there was a try since it was made.
    pub fn is_used(&self) -> bool {
        self.left < MAX_RECONNECTS
    }

    /// Waits before the next try; false when there is none left. Safe to cancel: whoever waits again
    /// waits for the rest.
    pub async fn again(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        let at = *self.next_at.get_or_insert(Instant::now() + self.pause);
        tokio::time::sleep_until(at).await;
        self.next_at = None;
        self.left -= 1;
        self.pause *= 2;
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_as_long_for_who_goes_away_and_comes_back_all_the_time() {
        let all = RECONNECT_PAUSE * (2_u32.pow(MAX_RECONNECTS) - 1);
        let turn = RECONNECT_PAUSE / 3;
        let (mut retry, begun, mut tries) = (Retry::default(), Instant::now(), 0);
        while begun.elapsed() < 2 * all {
            match timeout(turn, retry.again()).await {
                Ok(true) => tries += 1,
                Ok(false) => break,
                Err(_) => {}
            }
        }
        assert_eq!(tries, MAX_RECONNECTS);
        assert!(begun.elapsed() < all + MAX_RECONNECTS * turn, "{:?}", begun.elapsed());
        assert!(begun.elapsed() >= all && retry.is_used());
    }
}
