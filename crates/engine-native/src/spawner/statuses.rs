//! How machines' first processes ended, until somebody asks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::kernel::process::ExitStatus;
use crate::limits::KEPT_STATUSES;

#[derive(Default)]
pub(super) struct Statuses {
    kept: Mutex<Kept>,
    news: Notify,
}

#[derive(Default)]
struct Kept {
    by_pid: HashMap<i32, ExitStatus>,
    /// Oldest first; may name pids that were taken since.
    order: VecDeque<i32>,
}

impl Statuses {
    pub(super) fn report(&self, pid: i32, status: ExitStatus) {
        let mut kept = self.kept();
        kept.by_pid.insert(pid, status);
        kept.order.push_back(pid);
        if kept.order.len() > KEPT_STATUSES
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.by_pid.remove(&oldest);
        }
        drop(kept);
        self.news.notify_waiters();
    }

    pub(super) fn take(&self, pid: i32) -> Option<ExitStatus> {
        self.kept().by_pid.remove(&pid)
    }

    pub(super) async fn wait(&self, pid: i32) -> ExitStatus {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // Listen before looking, or a report in between is missed.
            news.as_mut().enable();
            if let Some(status) = self.take(pid) {
                return status;
            }
            news.await;
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_status_reaches_whoever_waits_and_only_once() {
        let statuses = Statuses::default();
        let (status, ()) =
            tokio::join!(statuses.wait(7), async { statuses.report(7, ExitStatus::Exited(3)) });
        assert_eq!(status, ExitStatus::Exited(3));
        assert_eq!(statuses.take(7), None);
    }

    #[test]
    fn unasked_statuses_do_not_pile_up() {
        let statuses = Statuses::default();
        for pid in 0..2 * KEPT_STATUSES as i32 {
            statuses.report(pid, ExitStatus::Exited(0));
        }
        assert_eq!(statuses.kept().by_pid.len(), KEPT_STATUSES);
        assert_eq!(statuses.take(0), None);
    }
}
