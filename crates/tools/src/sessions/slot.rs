//! The place of one session, and who uses it.

use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};

use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Sandbox;

pub(super) struct Slot {
    /// Held while it is opened, so that a session has one sandbox.
    pub(super) sandbox: Arc<Mutex<Option<Arc<dyn Sandbox>>>>,
    usage: Lock<Usage>,
    /// The newest line about its filling, for all who wait for it.
    pub(super) filling: watch::Sender<String>,
    /// The sandbox is to be ended, also where it is not there yet.
    pub(super) unwanted: CancellationToken,
}

struct Usage {
    calls: usize,
    last: Instant,
    /// The session had another sandbox before, and has not been told that it is gone.
    is_news: bool,
}

impl Slot {
    pub(super) fn new() -> Self {
        let usage = Usage { calls: 0, last: Instant::now(), is_news: false };
        Self {
            sandbox: Arc::default(),
            usage: Lock::new(usage),
            filling: watch::Sender::default(),
            unwanted: CancellationToken::new(),
        }
    }

    pub(super) fn begin_use(&self) {
        self.usage().calls += 1;
    }

    pub(super) fn end_use(&self) {
        let mut usage = self.usage();
        usage.calls -= 1;
        usage.last = Instant::now();
    }

    pub(super) fn users(&self) -> usize {
        self.usage().calls
    }

    pub(super) fn set_news(&self, is_news: bool) {
        self.usage().is_news = is_news;
    }

    pub(super) fn is_news(&self) -> bool {
        self.usage().is_news
    }

    /// None while it is used.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let usage = self.usage();
        (usage.calls == 0).then_some(usage.last)
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
