//! A clean byte stream on top of a pipe, for as long as nobody opens the link anew.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::codec::{Decoder, Mark, Nonce};
use super::outgoing::Outgoing;
use crate::limits::LINK_SEARCH_BYTES;

/// One end of the link. Readable and writable between an open and the next.
pub struct Link<S> {
    stream: S,
    decoder: Decoder,
    /// Of the wire, behind an open that was found.
    unread: Bytes,
    outgoing: Outgoing,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unopened,
    Open,
    /// Cut in the middle of something; nothing is payload before the next open.
    Damaged,
    /// Somebody opened the link; what was there before is over.
    Reopened(Nonce),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// Closed until it is opened or accepted.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            decoder: Decoder::default(),
            unread: Bytes::new(),
            outgoing: Outgoing::default(),
            state: State::Unopened,
        }
    }

    /// The runner's side: waits for an open and answers it. From then on this is a new stream,
    /// and what was not sent of the one before never will be.
    pub async fn accept(&mut self) -> io::Result<()> {
        self.outgoing.begin_with(&[]);
        let nonce = match self.state {
            State::Reopened(nonce) => nonce,
            _ => self.next_open().await?,
        };
        self.outgoing.begin_with(&nonce.open());
        self.state = State::Open;
        Ok(())
    }

    /// The daemon's side: opens the link and drops everything until the answer.
    pub(super) async fn open(&mut self, nonce: Nonce) -> io::Result<()> {
        self.outgoing.begin_with(&nonce.open());
        while self.next_open().await? != nonce {}
        self.state = State::Open;
        Ok(())
    }

    /// Drops everything before the next open. Writes meanwhile: a runner that nobody listens to
    /// takes nothing before somebody does.
    async fn next_open(&mut self) -> io::Result<Nonce> {
        let mut found = vec![0; LINK_SEARCH_BYTES];
        loop {
            let length = poll_fn(|context| {
                if let Poll::Ready(written) = self.poll_send(context) {
                    written?;
                }
                let mut buffer = ReadBuf::new(&mut found);
                ready!(self.poll_fill(context, &mut buffer))?;
                Poll::Ready(io::Result::Ok(buffer.filled().len()))
            });
            let length = length.await?;
            if length == 0 {
                return Err(ended());
            }
            let mut rest = &mut found[..length];
            while !rest.is_empty() {
                let step = self.decoder.decode(rest);
                rest = &mut rest[step.taken..];
                if let Some(Mark::Open(nonce)) = step.mark {
                    self.put_back(rest);
                    return Ok(nonce);
                }
            }
        }
    }

    /// Everything buffered, and what the stream itself buffers.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.outgoing.poll_drain(&mut self.stream, context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// To be read first. There is something only when two daemons open the link at once.
    fn put_back(&mut self, wire: &[u8]) {
        self.unread = [wire, &self.unread].concat().into();
    }

    /// More of the wire, behind what `buffer` holds already.
    fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..length]);
        self.unread.advance(length);
        Poll::Ready(Ok(()))
    }

    fn check_open(&self) -> io::Result<()> {
        use io::ErrorKind::{ConnectionAborted, InvalidData, NotConnected};
        let (kind, text) = match self.state {
            State::Open => return Ok(()),
            State::Unopened => (NotConnected, "the link was not opened"),
            State::Damaged => (InvalidData, "the link was cut in the middle of something"),
            State::Reopened(_) => (ConnectionAborted, "another daemon has opened the link"),
        };
        Err(io::Error::new(kind, text))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Link<S> {
    /// The wire is read into the caller's own buffer, and becomes payload there.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_open()?;
        let before = buffer.filled().len();
        while buffer.remaining() > 0 {
            ready!(this.poll_fill(context, buffer))?;
            let piece = &mut buffer.filled_mut()[before..];
            if piece.is_empty() {
                break;
            }
            let step = this.decoder.decode(piece);
            if let Some(mark) = step.mark {
                this.put_back(&piece[step.taken..]);
                this.state = match mark {
                    Mark::Open(nonce) => State::Reopened(nonce),
                    Mark::Lost => State::Damaged,
                };
            }
            buffer.set_filled(before + step.payload);
            if step.payload > 0 {
                break;
            }
            this.check_open()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Link<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        payload: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check_open()?;
        this.outgoing.poll_write(&mut this.stream, context, payload)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        payload: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check_open()?;
        this.outgoing.poll_write_vectored(&mut this.stream, context, payload)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_open()?;
        this.poll_send(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_open()?;
        ready!(this.outgoing.poll_drain(&mut this.stream, context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the link ended before it was opened")
}
