//! What is on its way out: payload without an escape passes untouched, the rest through a buffer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use tokio::io::AsyncWrite;

use super::codec::{ESC, stuff};
use crate::limits::LINK_BUFFER_BYTES;

/// A run without an escape that is worth a write of its own.
const WORTH_A_WRITE: usize = 4 << 10;

#[derive(Default)]
pub(super) struct Outgoing {
    /// Wire bytes, of which those before `written` are gone. Made once, when first needed.
    wire: Vec<u8>,
    written: usize,
}

impl Outgoing {
    /// Drops what was not written and begins with these bytes of the wire.
    pub(super) fn begin_with(&mut self, wire: &[u8]) {
        self.wire.clear();
        self.wire.extend_from_slice(wire);
        self.written = 0;
    }

    /// Until the buffer is empty.
    pub(super) fn poll_drain<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.written < self.wire.len() {
            let rest = &self.wire[self.written..];
            match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.wire.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
        payload: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(stream, context))?;
        let run = memchr(ESC, payload).unwrap_or(payload.len());
        if run == payload.len() || run >= WORTH_A_WRITE {
            return Pin::new(stream).poll_write(context, &payload[..run]);
        }
        let taken = self.stuff(payload);
        self.start(stream, context)?;
        Poll::Ready(Ok(taken))
    }

    pub(super) fn poll_write_vectored<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
        payload: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(stream, context))?;
        if payload.iter().all(|slice| memchr(ESC, slice).is_none()) {
            return Pin::new(stream).poll_write_vectored(context, payload);
        }
        let mut taken = 0;
        for slice in payload {
            let step = self.stuff(slice);
            taken += step;
            if step < slice.len() {
                break;
            }
        }
        self.start(stream, context)?;
        Poll::Ready(Ok(taken))
    }

    fn stuff(&mut self, payload: &[u8]) -> usize {
        self.wire.reserve_exact(LINK_BUFFER_BYTES - self.wire.len());
        let room = LINK_BUFFER_BYTES - self.wire.len();
        stuff(payload, &mut self.wire, room)
    }

    /// What cannot be written now is written by the next write or flush.
    fn start<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        match self.poll_drain(stream, context) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(()),
        }
    }
}
