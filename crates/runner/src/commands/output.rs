//! A command's journal together with those who wait on it: readers for frames, the command's
//! driver for readers that keep up.

use std::cell::{Cell, Ref, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use sandbank_protocol::{Frame, StreamKind};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::journal::{Journal, Position};
use crate::limits::{FIRST_READER_PATIENCE, READ_BYTES, READER_PATIENCE};

pub(crate) struct Output {
    journal: RefCell<Journal>,
    stdout_bytes: Cell<u64>,
    stderr_bytes: Cell<u64>,
    /// Woken when a frame or the ending is appended.
    grown: Notify,
    /// Woken when a reader takes a frame or leaves.
    taken: Notify,
    readers: RefCell<Vec<Weak<Standing>>>,
    /// Stands for the first reader until it comes, so that it misses nothing.
    expected: RefCell<Option<Rc<Standing>>>,
    /// The driver waits for a reader right now.
    held_up: Cell<bool>,
}

/// Where one live reader stands, as the driver sees it.
struct Standing {
    position: RefCell<Position>,
    /// How long the command waits for it to move.
    patience: Duration,
    /// It did not move for too long: the command waits for it no more until it caught up.
    stalled: Cell<bool>,
}

impl Standing {
    fn new(position: Position, patience: Duration) -> Rc<Self> {
        let position = RefCell::new(position);
        Rc::new(Self { position, patience, stalled: Cell::new(false) })
    }
}

impl Output {
    pub(crate) fn new(budget: u64) -> Self {
        let journal = Journal::new(budget);
        let expected = Standing::new(journal.position(0), FIRST_READER_PATIENCE);
        Self {
            journal: RefCell::new(journal),
            stdout_bytes: Cell::new(0),
            stderr_bytes: Cell::new(0),
            grown: Notify::new(),
            taken: Notify::new(),
            readers: RefCell::new(vec![Rc::downgrade(&expected)]),
            expected: RefCell::new(Some(expected)),
            held_up: Cell::new(false),
        }
    }

    pub(crate) fn journal(&self) -> Ref<'_, Journal> {
        self.journal.borrow()
    }

    pub(crate) fn stdout_bytes(&self) -> u64 {
        self.stdout_bytes.get()
    }

    pub(crate) fn stderr_bytes(&self) -> u64 {
        self.stderr_bytes.get()
    }

    pub(super) fn append(
        &self,
        time_ms: u64,
        stream: StreamKind,
        data: Bytes,
        dropped: impl FnMut(Bytes),
    ) {
        let counter = match stream {
            StreamKind::Stdout | StreamKind::Pty => &self.stdout_bytes,
            StreamKind::Stderr => &self.stderr_bytes,
        };
        counter.set(counter.get() + data.len() as u64);
        self.journal.borrow_mut().append(time_ms, stream, data, dropped);
        self.grown.notify_waiters();
    }

    pub(super) fn end(&self, time_ms: u64, ending: Bytes) -> bool {
        let first = self.journal.borrow_mut().end(time_ms, ending);
        self.grown.notify_waiters();
        first
    }

    pub(super) fn drop_oldest(&self) -> Option<Bytes> {
        self.journal.borrow_mut().drop_oldest()
    }

    pub(super) fn clear(&self) {
        self.journal.borrow_mut().clear();
    }

    /// Whether the driver waits for a reader right now.
    pub(super) fn held_up(&self) -> bool {
        self.held_up.get()
    }

    /// Returns once another read drops nothing that a moving reader still needs. A reader that
    /// stands still for too long is not waited for until it has caught up.
    pub(super) async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            let Some(patience) = self.in_the_way().map(|reader| reader.patience).max() else {
                break;
            };
            self.held_up.set(true);
            if tokio::time::timeout(patience, taken).await.is_err() {
                self.in_the_way().for_each(|reader| reader.stalled.set(true));
            }
        }
        self.held_up.set(false);
    }

    /// Readers that would miss something by the next read.
    fn in_the_way(&self) -> impl Iterator<Item = Rc<Standing>> {
        let readers: Vec<_> = self.readers.borrow().iter().filter_map(Weak::upgrade).collect();
        readers.into_iter().filter(|reader| {
            let position = reader.position.borrow();
            !reader.stalled.get() && self.journal().would_overrun(&position, READ_BYTES as u64)
        })
    }
}

/// One reader's view; the command's driver waits for it within reason.
pub(crate) struct OutputReader<'a> {
    output: &'a Output,
    standing: Rc<Standing>,
}

impl<'a> OutputReader<'a> {
    pub(crate) fn new(output: &'a Output, after: u64) -> Self {
        let reader = Self::onlooker(output, after);
        // An onlooker is not the reader that was expected.
        output.expected.borrow_mut().take();
        let mut readers = output.readers.borrow_mut();
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Rc::downgrade(&reader.standing));
        reader
    }

    /// A reader that nobody waits for, however slow it is: it misses what it does not take in time.
    pub(crate) fn onlooker(output: &'a Output, after: u64) -> Self {
        let standing = Standing::new(output.journal().position(after), READER_PATIENCE);
        Self { output, standing }
    }

    /// Resolves when something was appended after this call.
    pub(crate) fn growth(&self) -> Notified<'a> {
        self.output.grown.notified()
    }

    pub(crate) fn next(&mut self) -> Option<Frame> {
        let journal = self.output.journal();
        let mut position = self.standing.position.borrow_mut();
        let frame = journal.next(&mut position)?;
        if position.after() == journal.last_seq() {
            self.standing.stalled.set(false);
        }
        self.output.taken.notify_waiters();
        Some(frame)
    }

    pub(crate) fn after(&self) -> u64 {
        self.standing.position.borrow().after()
    }

    /// Whether the ending was read.
    pub(crate) fn ended(&self) -> bool {
        self.standing.position.borrow().ended()
    }
}

impl Drop for OutputReader<'_> {
    fn drop(&mut self) {
        self.output.taken.notify_waiters();
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
