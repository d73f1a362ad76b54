//! A breaker: after some failures in a row nothing is tried for a while, then one request is.
//!
//! Says nothing about time of its own; whoever asks says when it is.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{BREAKER_FAILURES, BREAKER_RECOVERY, FAILURE_SPACING};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests are made.
    Closed,
    /// None is made before this time has passed.
    Open { retry_in: Duration },
    /// One request is made to find out.
    HalfOpen,
}

impl BreakerState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    failures: u32,
    last_failure: Option<Instant>,
    /// Open, and until when: the recovery time, or as long as a probe may take.
    until: Option<Instant>,
}

impl Breaker {
    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        self.with(|inner| match inner.until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open { retry_in: until - now },
            Some(_) => BreakerState::HalfOpen,
        })
    }

    /// Whether a request may be made; in the half-open state this one is the probe. A probe that
    /// nobody finished is followed by the next after the recovery time.
    pub(crate) fn try_pass(&self, now: Instant) -> Result<(), Duration> {
        self.with(|inner| match inner.until {
            None => Ok(()),
            Some(until) if now < until => Err(until - now),
            Some(_) => {
                inner.until = Some(now + BREAKER_RECOVERY);
                Ok(())
            }
        })
    }

    pub(crate) fn succeeded(&self) {
        self.with(|inner| *inner = Inner::default());
    }

    pub(crate) fn failed(&self, now: Instant) {
        self.with(|inner| {
            let is_same = inner.last_failure.is_some_and(|last| now < last + FAILURE_SPACING);
            inner.last_failure =
                Some(if is_same { inner.last_failure.unwrap_or(now) } else { now });
            inner.failures = inner.failures.saturating_add(u32::from(!is_same));
            if inner.until.is_some() || inner.failures >= BREAKER_FAILURES {
                inner.until = Some(now + BREAKER_RECOVERY);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Duration = FAILURE_SPACING;

    fn opened() -> (Breaker, Instant) {
        let breaker = Breaker::default();
        let mut now = Instant::now();
        for _ in 0..BREAKER_FAILURES {
            assert_eq!(breaker.try_pass(now), Ok(()), "it opened too early");
            breaker.failed(now);
            now += APART;
        }
        (breaker, now - APART)
    }

    #[test]
    fn five_failures_open_it_and_a_probe_that_succeeds_closes_it() {
        let (breaker, opened) = opened();
        assert_eq!(breaker.try_pass(opened), Err(BREAKER_RECOVERY));
        let later = opened + BREAKER_RECOVERY;
        assert_eq!(breaker.state(later), BreakerState::HalfOpen);
        assert_eq!(breaker.try_pass(later), Ok(()));
        assert!(breaker.try_pass(later).is_err(), "a second probe beside the first");
        breaker.succeeded();
        assert_eq!(breaker.state(later), BreakerState::Closed);
        assert_eq!(breaker.try_pass(later), Ok(()));
    }

    #[test]
    fn a_probe_that_fails_opens_it_again_and_one_that_is_dropped_does_not_close_it_for_ever() {
        let (breaker, opened) = opened();
        let later = opened + BREAKER_RECOVERY;
        assert_eq!(breaker.try_pass(later), Ok(()));
        breaker.failed(later);
        assert_eq!(breaker.state(later), BreakerState::Open { retry_in: BREAKER_RECOVERY });
        let probe = later + BREAKER_RECOVERY;
        assert_eq!(breaker.try_pass(probe), Ok(()));
        assert!(breaker.try_pass(probe).is_err());
        assert_eq!(breaker.try_pass(probe + BREAKER_RECOVERY), Ok(()));
    }

    #[test]
    fn a_success_between_failures_and_failures_of_one_moment_do_not_open_it() {
        let breaker = Breaker::default();
        let now = Instant::now();
        (0..100).for_each(|_| breaker.failed(now));
        assert_eq!(breaker.state(now), BreakerState::Closed);
        for n in 0..20 {
            breaker.failed(now + APART * (n + 1));
            if n % 3 == 0 {
                breaker.succeeded();
            }
        }
        assert_eq!(breaker.state(now + APART * 21), BreakerState::Closed);
    }
}
