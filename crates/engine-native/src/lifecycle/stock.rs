//! Refilling what is kept ready, between creates rather than during them.

use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use super::Parts;
use crate::limits::REFILL_PAUSE;

#[derive(Default)]
pub(super) struct Stock {
    wanted: Arc<Notify>,
    stopped: std::sync::atomic::AtomicBool,
}

impl Stock {
    /// Something was taken.
    pub(super) fn refill(&self) {
        self.wanted.notify_one();
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, std::sync::atomic::Ordering::Release);
        self.wanted.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(std::sync::atomic::Ordering::Acquire)
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        // Wakes the task, which then finds the engine gone.
        self.wanted.notify_one();
    }
}

pub(super) fn keep(parts: &Arc<Parts>) {
    let wanted = Arc::clone(&parts.stock.wanted);
    let parts: Weak<Parts> = Arc::downgrade(parts);
    tokio::spawn(async move {
        loop {
            {
                let Some(parts) = parts.upgrade() else { return };
                if parts.stock.is_stopped() {
                    return;
                }
                parts.user_namespaces.refill().await;
                let cgroups = Arc::clone(&parts);
                let _ = tokio::task::spawn_blocking(move || cgroups.cgroups.refill()).await;
            }
            wanted.notified().await;
            // Let the machine that used something up start in peace.
            tokio::time::sleep(REFILL_PAUSE).await;
        }
    });
}
