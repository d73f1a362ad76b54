//! The reading end of a command's pipe or terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use sandbank_protocol::StreamKind;
use tokio::io::unix::AsyncFd;

use super::buffers::{Buffers, CARRY_BYTES};
use super::utf8::unfinished_tail;
use crate::limits::{PIPE_BYTES, READ_BYTES, READS_PER_TURN, REOPENED_POLL};

pub(crate) type AsyncDescriptor = Rc<AsyncFd<OwnedFd>>;

pub(crate) struct Source {
    descriptor: AsyncDescriptor,
    stream: StreamKind,
    /// The beginning of a character whose rest was not written yet.
    carry: [u8; CARRY_BYTES],
    carried: usize,
    /// The pipe was made larger, or refused to be, or is none.
    grown: bool,
    at_end: bool,
}

/// A read this large means that the writer waits for the reader: the size of a default pipe.
const BUSY_BYTES: usize = 64 << 10;

/// Lets others run now and then while there is always something to read: readers that want to take
/// it before more arrives, and timers. A terminal hands out a few KiB at a time, so reads count, too.
#[derive(Default)]
pub(crate) struct Pace {
    bytes: usize,
    reads: usize,
}

impl Pace {
    pub(crate) async fn took(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.reads += 1;
        if self.bytes >= READ_BYTES / 2 || self.reads >= READS_PER_TURN {
            *self = Self::default();
            tokio::task::yield_now().await;
        }
    }
}

/// What one read brought.
pub(crate) enum Read {
    /// Whole characters; may be empty when only part of one arrived.
    Data(Bytes),
    /// Nothing to read now.
    Nothing,
    /// Every writer is gone.
    End,
}

impl Source {
    pub(crate) fn new(descriptor: AsyncDescriptor, stream: StreamKind) -> Self {
        let grown = stream == StreamKind::Pty;
        Self { descriptor, stream, carry: [0; CARRY_BYTES], carried: 0, grown, at_end: false }
    }

    pub(crate) fn stream(&self) -> StreamKind {
        self.stream
    }

    /// Waits until there is something, then reads once.
    pub(crate) async fn read(&mut self, buffers: &Buffers) -> Read {
        loop {
            let descriptor = self.descriptor.clone();
            let Ok(mut ready) = descriptor.readable().await else {
                self.at_end = true;
                return Read::End;
            };
            match self.read_now(buffers) {
                // A terminal that everybody had closed, and somebody opened again: that it was closed
                // is announced for ever, so there is nothing to wait for but time.
                Read::Nothing if ready.ready().is_read_closed() => {
                    tokio::time::sleep(REOPENED_POLL).await;
                }
                Read::Nothing => ready.clear_ready(),
                read => return read,
            }
        }
    }

    /// Reads once without waiting, whether or not the kernel announced anything.
    pub(crate) fn read_now(&mut self, buffers: &Buffers) -> Read {
        if self.at_end {
            return Read::End;
        }
        let mut buffer = buffers.take();
        buffer.extend_from_slice(&self.carry[..self.carried]);
        match read_into(&self.descriptor, &mut buffer) {
            Ok(count) if count > 0 => {
                if count >= BUSY_BYTES && !self.grown {
                    self.grow();
                }
                let tail = unfinished_tail(&buffer);
                let whole = buffer.len() - tail;
                self.carry[..tail].copy_from_slice(&buffer[whole..]);
                self.carried = tail;
                buffer.truncate(whole);
                Read::Data(buffers.freeze(buffer))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                buffers.give_back(buffer);
                Read::Nothing
            }
            // A terminal whose other side is closed says EIO where a pipe says 0.
            Ok(_) | Err(_) => {
                buffers.give_back(buffer);
                self.at_end = true;
                Read::End
            }
        }
    }

    /// Only for streams that fill their pipe: the kernel counts pipe sizes per user, and gives a
    /// user with too many hardly any for further pipes.
    fn grow(&mut self) {
        self.grown = true;
        let _ = rustix::pipe::fcntl_setpipe_size(self.descriptor.get_ref(), PIPE_BYTES);
    }

    /// What is held back, when nothing can complete it any more.
    pub(crate) fn take_carry(&mut self) -> Bytes {
        let carried = std::mem::take(&mut self.carried);
        Bytes::copy_from_slice(&self.carry[..carried])
    }

    /// Waits for and throws away output until every writer is gone; tells `counted` how much.
    pub(crate) async fn discard(mut self, buffers: &Buffers, counted: impl Fn(StreamKind, Bytes)) {
        loop {
            match self.read(buffers).await {
                Read::Data(data) => counted(self.stream, data),
                Read::Nothing | Read::End => return,
            }
            tokio::task::yield_now().await;
        }
    }
}

/// At most [`READ_BYTES`] at once.
fn read_into(descriptor: &AsyncFd<OwnedFd>, buffer: &mut BytesMut) -> io::Result<usize> {
    loop {
        let spare = buffer.spare_capacity_mut();
        let room = spare.len().min(READ_BYTES);
        match rustix::io::read(descriptor.get_ref(), &mut spare[..room]) {
            Ok((read, _)) => {
                let count = read.len();
                let filled = buffer.len() + count;
                // SAFETY: the kernel has just filled `count` bytes behind the old length.
                unsafe { buffer.set_len(filled) };
                return Ok(count);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
