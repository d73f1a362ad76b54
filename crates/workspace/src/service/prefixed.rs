//! A stream whose first bytes have been looked at, and are read again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How HTTP/2 begins when nobody asked.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

pub(super) struct Prefixed<S> {
    first: Vec<u8>,
    inner: S,
}

impl<S: AsyncRead + Unpin> Prefixed<S> {
    /// Reads until it is clear whether this is HTTP/2.
    pub(super) async fn look(mut inner: S) -> io::Result<(Self, bool)> {
        let mut first = Vec::with_capacity(PREFACE.len());
        while first.len() < PREFACE.len() && PREFACE.starts_with(&first) {
            let missing = (PREFACE.len() - first.len()) as u64;
            if (&mut inner).take(missing).read_buf(&mut first).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let is_http2 = first == PREFACE;
        Ok((Self { first, inner }, is_http2))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let length = self.first.len().min(buf.remaining());
        buf.put_slice(&self.first[..length]);
        self.first.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
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
    use super::*;

    #[tokio::test]
    async fn what_was_looked_at_is_read_again_whatever_it_was() {
        for (bytes, is_http2) in [
            (&b"PRI * HTTP/2.0\r\n\r\nSM"[..], true),
            (b"GET /healthz HTTP/1.1\r\n", false),
            (b"PRI * HTTP/1.0\r\n\r\n", false),
            (b"P", false),
        ] {
            let Ok((mut stream, found)) = Prefixed::look(bytes).await else {
                assert_eq!(bytes, b"P", "it ends before it is clear");
                continue;
            };
            assert_eq!(found, is_http2);
            let mut read = Vec::new();
            stream.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, bytes);
        }
    }
}
