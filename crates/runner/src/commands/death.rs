//! The reaper's word on a process, for those who wait for it.

use std::cell::Cell;

use tokio::sync::Notify;

use super::WaitStatus;

#[derive(Default)]
pub(super) struct Death {
    /// Set once; from then on the pid may belong to another process.
    status: Cell<Option<WaitStatus>>,
    told: Notify,
}

impl Death {
    pub(super) fn tell(&self, status: WaitStatus) {
        self.status.set(Some(status));
        self.told.notify_waiters();
    }

    pub(super) fn status(&self) -> Option<WaitStatus> {
        self.status.get()
    }

    /// Resolves when the process was reaped.
    pub(super) async fn told(&self) -> WaitStatus {
        loop {
            let told = self.told.notified();
            if let Some(status) = self.status.get() {
                return status;
            }
            told.await;
        }
    }
}
