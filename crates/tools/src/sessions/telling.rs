//! How far the filling of a workspace is, for one who waits for it.

use tokio::sync::watch;
use tokio::time::Instant;

use crate::limits::UPDATE_INTERVAL;
use crate::seed::Progress;

/// The newest line each time, and not too often; the last one in any case.
pub(super) async fn tell_meanwhile<T>(
    work: impl Future<Output = T>,
    mut lines: watch::Receiver<String>,
    told: Progress<'_>,
) -> T {
    tokio::pin!(work);
    let mut next = Instant::now();
    loop {
        // A line stays unseen until it is told.
        let due = async {
            tokio::time::sleep_until(next).await;
            if lines.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            done = &mut work => {
                if lines.has_changed().unwrap_or(false) {
                    told(&lines.borrow_and_update());
                }
                return done;
            }
            () = due => {}
        }
        told(&lines.borrow_and_update());
        next = Instant::now() + UPDATE_INTERVAL;
    }
}
