//! How many long-lived answers there may be, and how they end when the daemon does.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ApiResult};
use crate::limits::RETRY_SOON;

/// The code of an answer to one stream too many.
pub(crate) const TOO_MANY_STREAMS: &str = "too_many_streams";

/// Held by a stream for as long as it lives.
pub(crate) type StreamPermit = OwnedSemaphorePermit;

pub(crate) struct Streams {
    permits: Arc<Semaphore>,
    max: usize,
}

impl Streams {
    pub(crate) fn new(max: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(max)), max }
    }

    pub(crate) fn open(&self) -> ApiResult<StreamPermit> {
        self.permits.clone().try_acquire_owned().map_err(|_| {
            ApiError::overloaded(
                StatusCode::SERVICE_UNAVAILABLE,
                TOO_MANY_STREAMS,
                format!("all {} streams are in use", self.max),
                RETRY_SOON,
            )
            .with_hint("close streams that nobody reads, or raise server.max_streams")
        })
    }

    /// Resolves when the last one has ended. Nobody gets a new one meanwhile.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_stream_makes_room_for_the_next() {
        let streams = Streams::new(1);
        let first = streams.open().unwrap();
        assert_eq!(streams.open().unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(streams.open().is_ok());
    }
}
