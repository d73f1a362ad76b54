//! The keys that leave a terminal without ending what runs in it.

use std::time::{Duration, Instant};

/// Ctrl-], three times within a second. Rare enough, and the presses are passed on meanwhile, so
/// no program loses its key.
const KEY: u8 = 0x1d;
const PRESSES: usize = 3;
const WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct DetachKeys {
    presses: Vec<Instant>,
}

impl DetachKeys {
    /// Whether these bytes, typed at this moment, complete the sequence.
    pub(super) fn typed(&mut self, bytes: &[u8], now: Instant) -> bool {
        for byte in bytes {
            if *byte != KEY {
                self.presses.clear();
                continue;
            }
            self.presses.retain(|press| now.duration_since(*press) <= WITHIN);
            self.presses.push(now);
            if self.presses.len() == PRESSES {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quick_presses_detach() {
        let start = Instant::now();
        let mut keys = DetachKeys::default();
        assert!(!keys.typed(&[KEY], start));
        assert!(!keys.typed(&[KEY], start + Duration::from_millis(300)));
        assert!(keys.typed(&[KEY], start + Duration::from_millis(600)));
        assert!(DetachKeys::default().typed(&[b'a', KEY, KEY, KEY], start));
    }

    #[test]
    fn slow_presses_and_other_keys_between_do_not() {
        let start = Instant::now();
        let mut keys = DetachKeys::default();
        for second in 0..5 {
            assert!(!keys.typed(&[KEY], start + Duration::from_millis(second * 700)));
        }
        assert!(!DetachKeys::default().typed(&[KEY, KEY, b'x', KEY], start));
    }
}
