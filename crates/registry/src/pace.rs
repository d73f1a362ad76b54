//! How fast a body must come: not too long nothing, and not too little for long.

use std::time::Duration;

use crate::RegistryError;
use crate::limits::{SLOWEST_BYTES, SLOWEST_STALLS};

/// Of one body. Only the time that was spent waiting for it counts: that the disk is slow is not the
/// registry's fault.
pub(crate) struct Pace {
    stall: Duration,
    /// Since there were last enough bytes.
    pub(crate) waited: Duration,
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(stall: Duration) -> Self {
        Self { stall, waited: Duration::ZERO, bytes: 0 }
    }

    /// How long the next piece may take.
    pub(crate) fn patience(&self) -> Duration {
        self.stall.min((self.stall * SLOWEST_STALLS).saturating_sub(self.waited))
    }

    pub(crate) fn came(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= SLOWEST_BYTES {
            (self.waited, self.bytes) = (Duration::ZERO, 0);
        }
    }

    /// After that much patience has run out.
    pub(crate) fn too_slow(&self, host: String, patience: Duration) -> RegistryError {
        if patience == self.stall {
            return RegistryError::Stalled { host, waited: self.stall };
        }
        RegistryError::Slow { host, bytes: self.bytes, waited: self.stall * SLOWEST_STALLS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_runs_out_with_too_few_bytes_and_begins_anew_with_enough() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(second);
        for _ in 0..20 {
            pace.waited += second * SLOWEST_STALLS * 9 / 10;
            pace.came(SLOWEST_BYTES);
            assert_eq!(pace.patience(), second);
        }
        for _ in 0..SLOWEST_STALLS {
            pace.waited += second;
            pace.came(1);
        }
        assert_eq!(pace.patience(), Duration::ZERO);
        let error = pace.too_slow(String::new(), pace.patience());
        assert!(matches!(error, RegistryError::Slow { bytes: 2, .. }));
        let error = Pace::new(second).too_slow(String::new(), second);
        assert!(matches!(error, RegistryError::Stalled { .. }));
    }
}
