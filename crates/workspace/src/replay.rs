//! Which signatures have been used. A request that changes something is taken once.

use std::collections::{BTreeMap, HashSet};

use crate::limits::{MAX_REPLAYS, MAX_SKEW_SECONDS};

#[derive(Debug)]
pub(crate) struct Replays {
    /// By the second they were signed in.
    used: BTreeMap<u64, HashSet<u128>>,
    count: usize,
    /// What was signed before is refused: nobody remembers whether it was used.
    earliest: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Used {
    Before,
    /// It was signed before this service remembers.
    Unknown,
}

impl Replays {
    pub(crate) fn since(now: u64) -> Self {
        Self { used: BTreeMap::new(), count: 0, earliest: now }
    }

    /// Takes a signature that is otherwise right, once.
    pub(crate) fn take(&mut self, now: u64, signed_at: u64, nonce: u128) -> Result<(), Used> {
        // Whatever is older is refused for its age.
        let aged = now.saturating_sub(MAX_SKEW_SECONDS + 1);
        while let Some(entry) = self.used.first_entry().filter(|entry| *entry.key() < aged) {
            self.count -= entry.remove().len();
        }
        if signed_at < self.earliest {
            return Err(Used::Unknown);
        }
        if !self.used.entry(signed_at).or_default().insert(nonce) {
            return Err(Used::Before);
        }
        self.count += 1;
        while self.count > MAX_REPLAYS
            && let Some((second, forgotten)) = self.used.pop_first()
        {
            self.count -= forgotten.len();
            self.earliest = self.earliest.max(second + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_taken_once_and_never_from_before_the_start() {
        let mut replays = Replays::since(1_000);
        assert_eq!(replays.take(1_001, 1_001, 7), Ok(()));
        assert_eq!(replays.take(1_002, 1_001, 7), Err(Used::Before));
        assert_eq!(replays.take(1_002, 1_001, 8), Ok(()), "another one of that second");
        assert_eq!(replays.take(1_002, 1_002, 7), Ok(()), "its number in another second");
        assert_eq!(replays.take(1_002, 999, 9), Err(Used::Unknown));
    }

    #[test]
    fn what_is_too_old_to_be_taken_is_forgotten() {
        let mut replays = Replays::since(0);
        (0..1_000).for_each(|nonce| drop(replays.take(10, 10, nonce)));
        assert_eq!(replays.count, 1_000);
        assert_eq!(replays.take(10 + MAX_SKEW_SECONDS + 2, 400, 1), Ok(()));
        assert_eq!(replays.count, 1);
    }

    #[test]
    fn memory_is_bounded_and_what_was_forgotten_is_refused() {
        let mut replays = Replays::since(0);
        assert_eq!(replays.take(5, 4, 1), Ok(()));
        for nonce in 0..MAX_REPLAYS as u128 {
            assert_eq!(replays.take(5, 5, nonce), Ok(()));
        }
        assert!(replays.count <= MAX_REPLAYS);
        assert_eq!(replays.take(5, 4, 1), Err(Used::Unknown), "forgotten, and not taken again");
        assert_eq!(replays.take(5, 5, 3), Err(Used::Before), "the rest is remembered");
    }
}
