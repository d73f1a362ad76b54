//! A command's stdin: bytes by offset, so that a request can be repeated without repeating bytes.
//!
//! Writers take turns. Nothing is buffered: a body is read as fast as the command reads.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandbank_protocol::{CommandId, Fault, FaultCode, StdinStatus};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex, MutexGuard, Notify};

use super::source::AsyncDescriptor;
use super::writers::Writers;

/// What a terminal takes for the end of input at the beginning of a line.
const END_OF_INPUT: u8 = 4;

pub(crate) struct Stdin {
    /// None once closed.
    sink: RefCell<Option<Sink>>,
    /// Held by the request that is writing.
    turn: Mutex<()>,
    next_offset: Cell<u64>,
    writers: RefCell<Writers>,
    /// The last byte did not end a line; matters to terminals only.
    line_begun: Cell<bool>,
    /// Wakes the writer when the command begins, and when it ends while it waits for room.
    opening: Notify,
    closing: Notify,
}

#[derive(Clone)]
pub(crate) enum Sink {
    /// Of a command that has not begun: writers wait.
    Later,
    Pipe(AsyncDescriptor),
    Terminal(AsyncDescriptor),
}

impl Stdin {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self {
            sink: RefCell::new(sink),
            turn: Mutex::new(()),
            next_offset: Cell::new(0),
            writers: RefCell::default(),
            line_begun: Cell::new(false),
            opening: Notify::new(),
            closing: Notify::new(),
        }
    }

    pub(crate) fn next_offset(&self) -> u64 {
        self.next_offset.get()
    }

    /// For a command that begins later than it is made.
    pub(super) fn open(&self, sink: Sink) {
        *self.sink.borrow_mut() = Some(sink);
        self.opening.notify_waiters();
    }

    /// Lets go of the command's stdin.
    pub(crate) fn close(&self) {
        self.sink.borrow_mut().take();
        self.closing.notify_waiters();
    }

    /// Feeds a body that starts at `offset`, or behind all that was accepted when it is its turn;
    /// bytes that were accepted before are skipped.
    pub(crate) async fn feed(
        &self,
        offset: Option<u64>,
        eof: bool,
        mut body: Incoming,
    ) -> Result<StdinStatus, Fault> {
        let _turn = self.turn.lock().await;
        let next = self.next_offset.get();
        let offset = offset.unwrap_or(next);
        no_gap(offset, next)?;
        let mut skip = next - offset;
        while let Some(mut data) = next_data(&mut body).await? {
            let skipped = skip.min(data.len() as u64);
            data.advance(skipped as usize);
            skip -= skipped;
            self.write(None, data).await?;
        }
        if eof {
            self.end_input().await?;
        }
        Ok(StdinStatus { next_offset: self.next_offset.get(), closed: self.is_closed() })
    }

    /// Feeds what one of several writers sends, who each count their own bytes: whatever the others
    /// do, each of its bytes arrives once.
    pub(crate) async fn feed_by(
        &self,
        writer: &CommandId,
        offset: u64,
        mut body: Incoming,
    ) -> Result<StdinStatus, Fault> {
        let mut at = offset;
        drop(self.turn_of(writer, at).await?);
        while let Some(mut data) = next_data(&mut body).await? {
            // Only now: who sends slowly holds nobody up.
            let (_turn, accepted) = self.turn_of(writer, at).await?;
            let length = data.len() as u64;
            data.advance((accepted - at).min(length) as usize);
            at += length;
            self.write(Some(writer), data).await?;
        }
        let next_offset = self.writers.borrow().accepted(writer);
        Ok(StdinStatus { next_offset, closed: self.is_closed() })
    }

    /// Its turn to write what it counts from `at` on, and how much of its own was accepted.
    async fn turn_of(
        &self,
        writer: &CommandId,
        at: u64,
    ) -> Result<(MutexGuard<'_, ()>, u64), Fault> {
        let turn = self.turn.lock().await;
        let accepted = self.writers.borrow().accepted(writer);
        no_gap(at, accepted)?;
        Ok((turn, accepted))
    }

    fn is_closed(&self) -> bool {
        self.sink.borrow().is_none()
    }

    async fn write(&self, writer: Option<&CommandId>, mut data: Bytes) -> Result<(), Fault> {
        while !data.is_empty() {
            let sink = self.begun().await.ok_or_else(|| self.closed())?;
            let (Sink::Pipe(descriptor) | Sink::Terminal(descriptor)) = sink else { continue };
            let closing = self.closing.notified();
            let written = tokio::select! {
                biased;
                written = write_some(&descriptor, &data) => written,
                () = closing => return Err(self.closed()),
            };
            match written {
                Ok(count) => {
                    self.line_begun.set(!matches!(data[count - 1], b'\n' | b'\r'));
                    data.advance(count);
                    self.next_offset.set(self.next_offset.get() + count as u64);
                    if let Some(writer) = writer {
                        self.writers.borrow_mut().add(writer, count as u64);
                    }
                }
                Err(_) => {
                    self.close();
                    return Err(self.closed());
                }
            }
        }
        Ok(())
    }

    /// Where to write to, once the command has begun. None when it is closed.
    async fn begun(&self) -> Option<Sink> {
        loop {
            let (opening, closing) = (self.opening.notified(), self.closing.notified());
            match self.sink.borrow().clone() {
                Some(Sink::Later) => {}
                sink => return sink,
            }
            tokio::select! {
                () = opening => {}
                () = closing => {}
            }
        }
    }

    /// Closes a pipe; a terminal stays open and is told that its input ends.
    async fn end_input(&self) -> Result<(), Fault> {
        self.begun().await;
        let sink = self.sink.borrow_mut().take();
        if let Some(Sink::Terminal(descriptor)) = sink {
            // In the middle of a line it only hands over that line.
            for _ in 0..=usize::from(self.line_begun.get()) {
                let ended = write_some(&descriptor, &[END_OF_INPUT]).await;
                ended.map_err(|_| self.closed())?;
            }
        }
        Ok(())
    }

    fn closed(&self) -> Fault {
        let next = self.next_offset.get();
        Fault::new(FaultCode::Closed, format!("stdin is closed; it was accepted up to {next}"))
    }
}

fn no_gap(offset: u64, next: u64) -> Result<(), Fault> {
    if offset <= next {
        return Ok(());
    }
    let message = format!("stdin was accepted up to {next}; {offset} would leave a gap");
    Err(Fault::new(FaultCode::Conflict, message))
}

async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, Fault> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Fault::new(FaultCode::Invalid, format!("the stdin body broke off: {error}"))
        })?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

async fn write_some(descriptor: &AsyncFd<OwnedFd>, data: &[u8]) -> io::Result<usize> {
    loop {
        let mut ready = descriptor.writable().await?;
        match rustix::io::write(descriptor.get_ref(), data) {
            Ok(count) if count > 0 => return Ok(count),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
