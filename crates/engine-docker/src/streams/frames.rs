//! Docker's multiplexed streams: each piece of output has a head of eight bytes, the first of which
//! says which stream it is of, the last four how long it is. Input goes as it is.
//!
//! Output is read right into the reader's buffer; only heads pass through here.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Complaints;
use crate::limits::MAX_FRAME_BYTES;

const HEAD_BYTES: usize = 8;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;

/// Of error output that is read at once.
const STDERR_PIECE: usize = 1024;

pub(crate) struct Frames<S> {
    inner: S,
    /// What was read before this began.
    early: Bytes,
    head: [u8; HEAD_BYTES],
    /// How much of the head is here.
    have: usize,
    /// What is still to come of the frame.
    left: usize,
    complaints: Complaints,
}

impl<S> Frames<S> {
    pub(crate) fn new(inner: S, early: Bytes, complaints: Complaints) -> Self {
        Self { inner, early, head: [0; HEAD_BYTES], have: 0, left: 0, complaints }
    }
}

impl<S: AsyncRead + Unpin> Frames<S> {
    fn poll_inner(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let length = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..length]);
        self.early.advance(length);
        Poll::Ready(Ok(()))
    }

    /// False at the end of the stream.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.have < HEAD_BYTES {
            let mut head = self.head;
            let mut rest = ReadBuf::new(&mut head[self.have..]);
            ready!(self.poll_inner(cx, &mut rest))?;
            let read = rest.filled().len();
            if read == 0 {
                return Poll::Ready(Ok(false));
            }
            self.head = head;
            self.have += read;
        }
        let [kind, _, _, _, a, b, c, d] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !matches!(kind, STDOUT | STDERR) || length > MAX_FRAME_BYTES {
            let text = format!("Docker sent a frame of kind {kind} and {length} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        (self.left, self.have) = (length, 0);
        Poll::Ready(Ok(true))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Frames<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            while this.left == 0 {
                if !ready!(this.poll_head(cx))? {
                    return Poll::Ready(Ok(()));
                }
            }
            if this.head[0] == STDOUT {
                let most = this.left.min(buf.remaining());
                let mut piece = ReadBuf::new(buf.initialize_unfilled_to(most));
                ready!(this.poll_inner(cx, &mut piece))?;
                let read = piece.filled().len();
                buf.advance(read);
                this.left -= read;
                return Poll::Ready(Ok(()));
            }
            let mut piece = [0; STDERR_PIECE];
            let most = this.left.min(STDERR_PIECE);
            let mut piece = ReadBuf::new(&mut piece[..most]);
            ready!(this.poll_inner(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.left -= piece.filled().len();
            this.complaints.hear(piece.filled());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Frames<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use sandbank_engine::SandboxId;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[kind, 0, 0, 0][..], &length, payload].concat()
    }

    /// Gives the bytes in pieces of one size.
    struct Pieces(Bytes, usize);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let length = self.1.min(self.0.len()).min(buf.remaining());
            buf.put_slice(&self.0[..length]);
            self.0.advance(length);
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn output_comes_out_whole_however_it_is_cut() {
        let wire = [
            frame(STDOUT, b"hello "),
            frame(STDERR, b"runner: trouble\n"),
            frame(STDOUT, b""),
            frame(STDOUT, &[7; 3000]),
        ]
        .concat();
        for (size, early) in [(1, 0), (3, 5), (9, 20), (wire.len(), wire.len())] {
            let complaints = Complaints::of(&SandboxId::random());
            let (first, rest) = wire.split_at(early);
            let pieces = Pieces(Bytes::copy_from_slice(rest), size);
            let early = Bytes::copy_from_slice(first);
            let mut frames = Frames::new(pieces, early, complaints.clone());
            let mut read = Vec::new();
            frames.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, [&b"hello "[..], &[7; 3000]].concat(), "in pieces of {size}");
            assert_eq!(complaints.last().as_deref(), Some("runner: trouble"));
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_the_stream_with_an_error() {
        for wire in [vec![9; 8], vec![1, 0, 0, 0, 255, 255, 255, 255]] {
            let complaints = Complaints::of(&SandboxId::random());
            let mut frames = Frames::new(Pieces(wire.into(), 8), Bytes::new(), complaints);
            let error = frames.read(&mut [0; 4]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
