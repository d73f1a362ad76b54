//! A stream that somebody else than its user can end: of two streams to one runner, what is still
//! on its way through the older one would end up in the middle of the newer.
//!
//! A stream ends in order, whoever ends it: its input is closed, and Docker closes the output when
//! it has passed on the last byte. Whoever opens the next one waits for that.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::LINK_END_DEADLINE;

pub(crate) struct Cuttable<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    shared: Arc<Shared<S>>,
    is_write_vectored: bool,
}

/// Ends the stream when asked to.
pub(crate) struct Cut<S> {
    shared: Arc<Shared<S>>,
}

impl<S> Clone for Cut<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<S> {
    used: Mutex<Used<S>>,
    /// Nothing of it is under way any more.
    ended: CancellationToken,
}

struct Used<S> {
    /// None from its end on.
    stream: Option<S>,
    /// Who waits for it.
    waker: Option<Waker>,
}

impl<S> Shared<S> {
    fn used(&self) -> MutexGuard<'_, Used<S>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Shared<S> {
    /// Begins to end it, if nobody did.
    fn begin_to_end(&self) {
        let (stream, waker) = {
            let mut used = self.used();
            (used.stream.take(), used.waker.take())
        };
        if let Some(stream) = stream {
            let ended = self.ended.clone();
            match Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn(end(stream, ended))),
                Err(_) => ended.cancel(),
            }
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

async fn end<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, ended: CancellationToken) {
    let ending = async {
        // A side that is gone has nothing under way.
        if stream.shutdown().await.is_ok() {
            let mut rest = vec![0; 16 << 10];
            while stream.read(&mut rest).await.is_ok_and(|length| length > 0) {}
        }
    };
    if timeout(LINK_END_DEADLINE, ending).await.is_err() {
        tracing::warn!("a link to a runner does not end in order");
    }
    drop(stream);
    ended.cancel();
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Cuttable<S> {
    pub(crate) fn new(stream: S) -> (Self, Cut<S>) {
        let is_write_vectored = stream.is_write_vectored();
        let used = Mutex::new(Used { stream: Some(stream), waker: None });
        let shared = Arc::new(Shared { used, ended: CancellationToken::new() });
        (Self { shared: Arc::clone(&shared), is_write_vectored }, Cut { shared })
    }
}

/// It goes with its user, whoever could still cut it.
impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Drop for Cuttable<S> {
    fn drop(&mut self) {
        self.shared.begin_to_end();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Cut<S> {
    /// Returns when nothing of it is under way, in bounded time.
    pub(crate) async fn end(&self) {
        self.shared.begin_to_end();
        self.shared.ended.cancelled().await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Cuttable<S> {
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        transfer: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut used = self.shared.used();
        let Some(stream) = used.stream.as_mut() else {
            let text = "another link to the runner was opened";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, text)));
        };
        let polled = transfer(Pin::new(stream), cx);
        if polled.is_pending() && used.waker.as_ref().is_none_or(|w| !w.will_wake(cx.waker())) {
            used.waker = Some(cx.waker().clone());
        }
        polled
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Cuttable<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_read(cx, buf))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Cuttable<S> {
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// All that comes, and then the end of the other way, as Docker does it.
    async fn pass_on(mut far: tokio::io::DuplexStream) -> Vec<u8> {
        let mut passed = Vec::new();
        far.read_to_end(&mut passed).await.unwrap();
        passed
    }

    #[tokio::test]
    async fn whoever_waits_for_a_stream_that_is_cut_is_told() {
        let (near, far) = tokio::io::duplex(64);
        let (mut stream, cut) = Cuttable::new(near);
        let reading = tokio::spawn(async move { stream.read(&mut [0; 4]).await });
        tokio::task::yield_now().await;
        let (passed, ()) = tokio::join!(pass_on(far), cut.end());
        let error = reading.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(passed, b"");
    }

    #[tokio::test]
    async fn a_stream_that_nobody_uses_is_closed_though_it_could_still_be_cut() {
        let (near, far) = tokio::io::duplex(64);
        let (stream, cut) = Cuttable::new(near);
        drop(stream);
        let passing = timeout(LINK_END_DEADLINE / 2, pass_on(far)).await;
        assert_eq!(passing.expect("the other side sees the end"), b"");
        cut.end().await;
    }

    #[tokio::test]
    async fn a_link_has_ended_only_when_its_last_byte_was_passed_on() {
        for dropped in [false, true] {
            let (near, mut far) = tokio::io::duplex(1 << 10);
            let (mut stream, cut) = Cuttable::new(near);
            stream.write_all(&[7; 1000]).await.unwrap();
            if dropped {
                drop(stream);
            }
            let passed_on = AtomicBool::new(false);
            let passing = async {
                let mut passed = Vec::new();
                // Docker's reader comes to it late.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                far.read_to_end(&mut passed).await.unwrap();
                passed_on.store(true, Ordering::SeqCst);
                drop(far);
                passed
            };
            let ending = async {
                cut.end().await;
                assert!(passed_on.load(Ordering::SeqCst), "what it wrote is still under way");
            };
            let (passed, ()) = tokio::join!(passing, ending);
            assert_eq!(passed, [7; 1000]);
        }
    }
}
