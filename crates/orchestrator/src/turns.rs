//! Callers' turns in the engine: a few at the same time, in the order they came.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use crate::OrchestratorError;

pub(crate) struct Turns {
    /// Waited for in a queue: whoever comes first is first.
    permits: Semaphore,
    at_once: Mutex<usize>,
    /// Callers that have a turn or wait for one.
    callers: watch::Sender<usize>,
    /// When a turn last came to what it was for.
    moved: Mutex<Option<Instant>>,
}

pub(crate) struct Turn<'a> {
    _permit: SemaphorePermit<'a>,
    _counted: Counted<'a>,
}

struct Counted<'a>(&'a watch::Sender<usize>);

impl Turns {
    pub(crate) fn new(at_once: usize) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        let (permits, callers) = (Semaphore::new(at_once), watch::Sender::new(0));
        Self { permits, at_once: Mutex::new(at_once), callers, moved: Mutex::default() }
    }

    /// From now on. Turns that somebody has are not taken away: fewer there are with the next call
    /// after they have ended.
    pub(crate) fn resize(&self, to: usize) {
        let to = to.clamp(1, Semaphore::MAX_PERMITS);
        let mut at_once = self.at_once.lock().unwrap_or_else(PoisonError::into_inner);
        if to > *at_once {
            self.permits.add_permits(to - *at_once);
            *at_once = to;
        } else {
            *at_once -= self.permits.forget_permits(*at_once - to);
        }
    }

    pub(crate) async fn take(&self) -> Result<Turn<'_>, OrchestratorError> {
        self.callers.send_modify(|callers| *callers += 1);
        let counted = Counted(&self.callers);
        let permit = self.permits.acquire().await.map_err(|_| OrchestratorError::ShuttingDown)?;
        Ok(Turn { _permit: permit, _counted: counted })
    }

    /// A machine was made. One that failed does not count: an engine that hangs fails one after the
    /// other, and nobody's turn would be worth waiting for.
    pub(crate) fn moved(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(crate) fn last_moved(&self) -> Option<Instant> {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many have a turn, and how many wait for one. The limit of sandboxes bounds both.
    pub(crate) fn standing(&self) -> (usize, usize) {
        let callers = *self.callers.borrow();
        let at_once = *self.at_once.lock().unwrap_or_else(PoisonError::into_inner);
        let having = at_once.saturating_sub(self.permits.available_permits()).min(callers);
        (having, callers - having)
    }

    /// Resolves when nobody has a turn or waits for one.
    pub(crate) async fn idle(&self) {
        let _ = self.callers.subscribe().wait_for(|callers| *callers == 0).await;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|callers| *callers -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn it_is_idle_when_nobody_has_a_turn_or_waits_for_one() {
        let turns = Turns::new(1);
        assert!(turns.idle().now_or_never().is_some());
        let first = turns.take().await.unwrap();
        let mut second = Box::pin(turns.take());
        assert!(second.as_mut().now_or_never().is_none(), "there is one turn");
        drop(first);
        assert!(turns.idle().now_or_never().is_none(), "somebody waits");
        drop(second.await);
        let mut gone = Box::pin(turns.take());
        let held = gone.as_mut().now_or_never();
        drop(held);
        drop(gone);
        assert!(turns.idle().now_or_never().is_some(), "whoever goes away counts no more");
    }

    #[tokio::test]
    async fn there_may_be_more_or_fewer_from_one_moment_to_the_next() {
        let turns = Turns::new(1);
        let first = turns.take().await.unwrap();
        let mut second = Box::pin(turns.take());
        assert!(second.as_mut().now_or_never().is_none(), "there is one turn");
        turns.resize(2);
        let second = second.now_or_never().expect("there are two").unwrap();
        assert_eq!(turns.standing(), (2, 0));
        turns.resize(1);
        assert_eq!(turns.standing(), (2, 0), "whoever has one keeps it");
        drop(first);
        turns.resize(1);
        assert!(turns.take().now_or_never().is_none(), "the second has the only one");
        assert_eq!(turns.standing(), (1, 0));
        drop(second);
        assert!(turns.take().now_or_never().is_some());
    }

    #[tokio::test]
    async fn turns_come_in_the_order_they_were_asked_for_and_are_counted() {
        let turns = Turns::new(2);
        let mut having: Vec<_> = vec![turns.take().await.unwrap(), turns.take().await.unwrap()];
        let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(turns.take())).collect();
        for waiting in &mut waiting {
            assert!(waiting.as_mut().now_or_never().is_none(), "there are two turns");
        }
        assert_eq!(turns.standing(), (2, 20));
        while !waiting.is_empty() {
            drop(having.remove(0));
            // The last is asked first: asking more often helps nobody.
            for later in waiting.iter_mut().skip(1).rev() {
                assert!(later.as_mut().now_or_never().is_none(), "somebody came before");
            }
            let first = waiting.remove(0).now_or_never().expect("its turn has come");
            having.push(first.unwrap());
            assert_eq!(turns.standing(), (2, waiting.len()));
        }
        drop(having);
        assert_eq!(turns.standing(), (0, 0));
    }
}
