//! How many requests one caller may make. The key is the token, or the address the connection
//! came from; headers like `X-Forwarded-For` are never looked at.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::StatusCode;

use crate::config::ServerSettings;
use crate::error::{ApiError, ApiResult};
use crate::limits::{MAX_RATE_KEYS, RETRY_SOON};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    Token(String),
    Peer(IpAddr),
}

pub(crate) struct RateLimit {
    limiter: Option<DefaultKeyedRateLimiter<RateKey>>,
    clock: DefaultClock,
    /// Counts requests, so that forgetting quiet callers is not tried on each.
    checks: AtomicU64,
}

impl RateLimit {
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        Self::per_second(settings.requests_per_second.unwrap_or(0), settings.request_burst)
    }

    /// None at all for a rate of 0.
    pub(crate) fn per_second(rate: u32, burst: u32) -> Self {
        let quota = NonZeroU32::new(rate).map(|rate| {
            let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
            Quota::per_second(rate).allow_burst(burst)
        });
        Self::with(quota)
    }

    /// So many a second, and so many at once.
    pub(crate) fn of(rate: u32, burst: u32) -> Self {
        let quota = NonZeroU32::new(rate).zip(NonZeroU32::new(burst));
        Self::with(quota.map(|(rate, burst)| Quota::per_second(rate).allow_burst(burst)))
    }

    fn with(quota: Option<Quota>) -> Self {
        let limiter = quota.map(RateLimiter::keyed);
        Self { limiter, clock: DefaultClock::default(), checks: AtomicU64::new(0) }
    }

    pub(crate) fn check(&self, key: &RateKey) -> ApiResult<()> {
        self.wait(key).map_or(Ok(()), |wait| {
            let status = StatusCode::TOO_MANY_REQUESTS;
            Err(ApiError::overloaded(status, "rate_limited", "too many requests", wait)
                .with_hint("slow down, or raise server.requests_per_second"))
        })
    }

    /// How long this caller has to; none where its request is within the limit, and then it counts.
    pub(crate) fn wait(&self, key: &RateKey) -> Option<Duration> {
        let limiter = self.limiter.as_ref()?;
        let turn = self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(1024);
        if turn && limiter.len() > MAX_RATE_KEYS {
            limiter.retain_recent();
        }
        let until = limiter.check_key(key).err()?;
        Some(until.wait_time_from(self.clock.now()).max(RETRY_SOON))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigFlags, Sources, load};

    fn limit(rate: &str, burst: &str) -> RateLimit {
        let flags = ConfigFlags::default()
            .with("server.requests_per_second", rate)
            .with("server.request_burst", burst);
        let sources = Sources { flags, is_root: true, ..Sources::default() };
        RateLimit::new(&load(&sources).unwrap().server)
    }

    #[test]
    fn each_caller_has_its_own_burst() {
        let limit = limit("1", "3");
        let key = |name: &str| RateKey::Token(name.to_owned());
        for _ in 0..3 {
            assert!(limit.check(&key("a")).is_ok());
        }
        let refusal = limit.check(&key("a")).unwrap_err();
        assert_eq!(refusal.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refusal.retryable && refusal.retry_after.is_some());
        assert!(limit.check(&key("b")).is_ok());
    }

    #[test]
    fn zero_switches_the_limit_off() {
        let limit = limit("0", "1");
        let key = || RateKey::Peer(IpAddr::from([127, 0, 0, 1]));
        assert!((0..1000).all(|_| limit.check(&key()).is_ok()));
    }
}
