//! What a connection said first. A service speaks HTTP/2; who speaks something else is no service
//! that is away, and will not become one.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// As many as tell protocols apart.
const LOOKED_AT: usize = 5;

const SETTINGS: u8 = 4;

#[derive(Clone, Default)]
pub(super) struct FirstBytes(Arc<Mutex<Vec<u8>>>);

impl FirstBytes {
    /// What was spoken, if it is known and not HTTP/2.
    pub(super) fn other_protocol(&self) -> Option<&'static str> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match first.as_slice() {
            b"HTTP/" => Some("HTTP/1.1"),
            // An alert, in any of its versions.
            [0x15, 3, ..] => Some("TLS"),
            // Settings are the first frame of HTTP/2; its kind is behind its length.
            [_, _, _, kind, _] if *kind != SETTINGS => Some("another protocol"),
            _ => None,
        }
    }

    /// How many are still of interest.
    fn take(&self, bytes: &[u8]) -> usize {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = LOOKED_AT - first.len();
        first.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        LOOKED_AT - first.len()
    }
}

/// A stream whose first bytes are remembered.
pub(super) struct Remembered<S> {
    inner: S,
    first: FirstBytes,
    missing: usize,
}

impl<S> Remembered<S> {
    pub(super) fn new(inner: S, first: FirstBytes) -> Self {
        Self { inner, first, missing: LOOKED_AT }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Remembered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if self.missing > 0 {
            self.missing = self.first.take(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Remembered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn protocols_are_known_by_their_first_bytes_however_they_come() {
        for (bytes, known) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], Some("HTTP/1.1")),
            (b"\x15\x03\x03\x00\x02\x02\x46", Some("TLS")),
            (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", None),
            (b"SSH-2.0-x", Some("another protocol")),
            (b"<!DOCTYPE HTML>", Some("another protocol")),
            (b"HTT", None),
            (b"", None),
        ] {
            for piece in [1, 3, 64] {
                let first = FirstBytes::default();
                let mut stream = Remembered::new(bytes, first.clone());
                let (mut read, mut buffer) = (Vec::new(), vec![0; piece]);
                loop {
                    match stream.read(&mut buffer).await.unwrap() {
                        0 => break,
                        n => read.extend_from_slice(&buffer[..n]),
                    }
                }
                assert_eq!((read.as_slice(), first.other_protocol()), (bytes, known), "{piece}");
            }
        }
    }
}
