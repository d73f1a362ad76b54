//! What was opened with a token ends when the token is revoked: WebSockets are closed with a code of
//! their own, long answers are cut, and a request that is not answered yet is given up.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::limits::LONG_ANSWER_BYTES;

/// Tokens that something may be open with.
#[derive(Debug, Default)]
pub(crate) struct Revocations(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    /// How often a token was revoked: whoever looked one up before looks again.
    times: u64,
    by_name: HashMap<Arc<str>, CancellationToken>,
}

impl Revocations {
    pub(super) fn times(&self) -> u64 {
        self.open().times
    }

    /// What tells that the token of this name is revoked. None when one was revoked since `times`:
    /// it may be this one.
    pub(super) fn watch(&self, name: &str, times: u64) -> Option<CancellationToken> {
        let mut open = self.open();
        if open.times != times {
            return None;
        }
        if let Some(known) = open.by_name.get(name) {
            return Some(known.clone());
        }
        Some(open.by_name.entry(name.into()).or_default().clone())
    }

    /// To be called when the store knows it.
    pub(crate) fn revoked(&self, name: &str) {
        let mut open = self.open();
        open.times += 1;
        if let Some(token) = open.by_name.remove(name) {
            token.cancel();
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body, cut when the token is revoked, if it is one that may last.
pub(super) fn cut_when(revoked: CancellationToken, body: Body) -> Body {
    if body.size_hint().exact().is_some_and(|bytes| bytes <= LONG_ANSWER_BYTES) {
        return body;
    }
    Body::new(Cut { body, revoked: Box::pin(revoked.cancelled_owned()) })
}

struct Cut {
    body: Body,
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Before more of it: there may always be more.
        if self.revoked.as_mut().poll(cx).is_ready() {
            let error = io::Error::new(io::ErrorKind::ConnectionAborted, "the token was revoked");
            return Poll::Ready(Some(Err(axum::Error::new(error))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_revoked_while_it_is_looked_up_is_looked_up_again() {
        let revocations = Revocations::default();
        let times = revocations.times();
        let (mine, other) =
            (revocations.watch("mine", times).unwrap(), revocations.watch("other", times).unwrap());
        revocations.revoked("mine");
        assert!(mine.is_cancelled() && !other.is_cancelled());
        assert!(revocations.watch("mine", times).is_none());
        // A later one of the same name is another token.
        let again = revocations.watch("mine", revocations.times()).unwrap();
        assert!(!again.is_cancelled());
    }
}
