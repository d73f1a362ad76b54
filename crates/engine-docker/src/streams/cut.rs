//! A stream that somebody else than its user can end: of two streams to one runner, what is still
//! on its way through the older one would end up in the middle of the newer.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) struct Cuttable<S> {
    shared: Arc<Mutex<Shared<S>>>,
    is_write_vectored: bool,
}

/// Ends the stream when asked to.
pub(crate) struct Cut<S> {
    shared: Arc<Mutex<Shared<S>>>,
}

struct Shared<S> {
    stream: Option<S>,
    /// Who waits for it.
    waker: Option<Waker>,
}

fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncWrite> Cuttable<S> {
    pub(crate) fn new(stream: S) -> (Self, Cut<S>) {
        let is_write_vectored = stream.is_write_vectored();
        let shared = Arc::new(Mutex::new(Shared { stream: Some(stream), waker: None }));
        (Self { shared: Arc::clone(&shared), is_write_vectored }, Cut { shared })
    }
}

impl<S> Cut<S> {
    pub(crate) fn cut(&self) {
        let (stream, waker) = {
            let mut shared = lock(&self.shared);
            (shared.stream.take(), shared.waker.take())
        };
        drop(stream);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<S: Unpin> Cuttable<S> {
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        transfer: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut shared = lock(&self.shared);
        let Some(stream) = shared.stream.as_mut() else {
            let text = "another link to the runner was opened";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, text)));
        };
        let polled = transfer(Pin::new(stream), cx);
        if polled.is_pending() && shared.waker.as_ref().is_none_or(|w| !w.will_wake(cx.waker())) {
            shared.waker = Some(cx.waker().clone());
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cuttable<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_read(cx, buf))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cuttable<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.is_write_vectored
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_for_a_stream_that_is_cut_is_told() {
        let (near, far) = tokio::io::duplex(64);
        let (mut stream, cut) = Cuttable::new(near);
        let reading = tokio::spawn(async move { stream.read(&mut [0; 4]).await });
        tokio::task::yield_now().await;
        cut.cut();
        let error = reading.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        let (mut read, _write) = tokio::io::split(far);
        assert_eq!(read.read(&mut [0; 4]).await.unwrap(), 0, "the other side sees the end");
    }
}
