//! What a watched tree and its readers share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use sandbank_protocol::WatchEvent;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ring::{Ring, Unknown};
use crate::clock::now_ms;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not everything is watched yet.
    Starting,
    Ready,
    /// Nothing is told any more.
    Over(String),
}

#[derive(Debug)]
pub(super) struct Shared {
    ring: RefCell<Ring>,
    phase: RefCell<Phase>,
    /// Either of them has changed.
    news: Notify,
    readers: Cell<usize>,
    /// Since when there is no reader.
    unread: Cell<Instant>,
}

/// Counts one for as long as it lives.
#[derive(Debug)]
pub(super) struct Reader(Rc<Shared>);

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            ring: RefCell::new(Ring::new(now_ms())),
            phase: RefCell::new(Phase::Starting),
            news: Notify::new(),
            readers: Cell::new(0),
            unread: Cell::new(Instant::now()),
        }
    }

    pub(super) fn push(&self, event: WatchEvent) {
        self.ring.borrow_mut().push(event);
        self.news.notify_waiters();
    }

    pub(super) fn enter(&self, phase: Phase) {
        if *self.phase.borrow() != phase {
            *self.phase.borrow_mut() = phase;
            self.news.notify_waiters();
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Until everything is watched, or why it is not.
    pub(super) async fn begun(&self) -> Result<(), String> {
        loop {
            let news = self.news();
            match self.phase() {
                Phase::Starting => news.await,
                Phase::Ready => return Ok(()),
                Phase::Over(reason) => return Err(reason),
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Over(_))
    }

    pub(super) fn last(&self) -> u64 {
        self.ring.borrow().last()
    }

    pub(super) fn next(&self, after: u64) -> Result<Option<Bytes>, Unknown> {
        self.ring.borrow().next(after)
    }

    /// To be made before looking, so that nothing is missed in between.
    pub(super) fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.news.notified()
    }

    /// None while somebody reads.
    pub(super) fn unread_since(&self) -> Option<Instant> {
        (self.readers.get() == 0).then(|| self.unread.get())
    }
}

impl Reader {
    pub(super) fn new(shared: Rc<Shared>) -> Self {
        shared.readers.set(shared.readers.get() + 1);
        Self(shared)
    }
}

impl std::ops::Deref for Reader {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.set(self.0.readers.get() - 1);
        self.0.unread.set(Instant::now());
    }
}
