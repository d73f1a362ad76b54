//! How serving ends: first politely, then at once.

use tokio_util::sync::CancellationToken;

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    force: CancellationToken,
}

impl Shutdown {
    /// No new connections; requests may finish within the grace time; streams end now.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Cuts every connection.
    pub fn force(&self) {
        self.drain.cancel();
        self.force.cancel();
    }

    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// The work to its end. It is cancelled when draining begins, and then still has its last word.
    pub(crate) async fn cancelling<T>(
        &self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(work);
        tokio::select! {
            done = &mut work => done,
            () = self.draining() => {
                cancel.cancel();
                work.await
            }
        }
    }

    pub async fn forced(&self) {
        self.force.cancelled().await;
    }
}
