//! The rest of a body that its handler did not read. Closing a socket with unread bytes would take
//! the answer away from the client again, so what still comes is read and thrown away: for a while.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::limits::{MAX_DISCARD_TIME, MAX_DISCARDED_BYTES};

/// A request's body. Dropped before its end, it is read on without its owner.
pub(crate) struct Lingering {
    /// None once it came to its end.
    body: Option<Incoming>,
    /// The client waits to be asked for it, which reading does: a request that was refused
    /// beforehand must not.
    unasked: bool,
}

impl Lingering {
    pub(crate) fn new(body: Incoming, headers: &HeaderMap) -> Self {
        let awaits = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
        Self {
            unasked: headers.get_all(header::EXPECT).iter().any(awaits),
            body: (!body.is_end_stream()).then_some(body),
        }
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.unasked = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(&mut *body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|_| !self.unasked)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(MAX_DISCARD_TIME, discard(body)));
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut left = MAX_DISCARDED_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(less) => left = less,
            None => break,
        }
    }
}
