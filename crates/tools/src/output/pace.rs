//! When the next update of a command that runs is due.

use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{UPDATE_CHARS, UPDATE_INTERVAL};

/// The first one at once; then when enough time has gone by and there is something new, or when
/// there is enough new at once.
#[derive(Debug)]
pub(crate) struct Pace {
    last: Instant,
    /// Characters that the last update showed.
    shown: usize,
    is_stale: bool,
}

impl Pace {
    /// From the first update on.
    pub(crate) fn begin(now: Instant) -> Self {
        Self { last: now, shown: 0, is_stale: false }
    }

    /// Something was said, and so many characters are kept now.
    pub(crate) fn note(&mut self, kept: usize, now: Instant) -> bool {
        self.is_stale = true;
        kept.abs_diff(self.shown) >= UPDATE_CHARS || self.elapsed(now) >= UPDATE_INTERVAL
    }

    /// When something is new that has not been shown: the moment at which it is.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.is_stale.then(|| self.last + UPDATE_INTERVAL)
    }

    /// An update was sent, or was left out because nobody took the ones before.
    pub(crate) fn updated(&mut self, kept: usize, now: Instant, sent: bool) {
        self.last = now;
        if sent {
            (self.shown, self.is_stale) = (kept, false);
        }
    }

    fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_characters_are_shown_at_once_and_few_after_a_while() {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin);
        assert_eq!(pace.due(), None);
        assert!(!pace.note(511, begin));
        assert_eq!(pace.due(), Some(begin + UPDATE_INTERVAL));
        assert!(pace.note(512, begin));
        pace.updated(512, begin, true);
        assert_eq!(pace.due(), None);
        assert!(!pace.note(513, begin + Duration::from_millis(149)));
        assert!(pace.note(513, begin + UPDATE_INTERVAL));
    }

    #[test]
    fn what_nobody_took_is_shown_later() {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin);
        assert!(pace.note(600, begin));
        pace.updated(600, begin, false);
        assert_eq!(pace.due(), Some(begin + UPDATE_INTERVAL));
    }

    proptest! {
        #[test]
        fn updates_are_bounded_by_time_and_by_what_is_kept(steps in prop::collection::vec((0u64..100, 0usize..300), 1..200)) {
            let begin = Instant::now();
            let (mut pace, mut now, mut kept, mut updates) = (Pace::begin(begin), begin, 0, 0u128);
            for (pause, characters) in steps {
                now += Duration::from_millis(pause);
                // A full buffer keeps as many as it has.
                kept = (kept + characters).min(2_000);
                if pace.note(kept, now) {
                    pace.updated(kept, now, true);
                    updates += 1;
                }
            }
            let elapsed = now.duration_since(begin).as_millis();
            prop_assert!(updates <= elapsed / 150 + 2_000 / 512);
        }
    }
}
