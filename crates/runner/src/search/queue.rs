//! The work of a search that waits for a thread: one queue for all of them, newest first, so that
//! little waits at once.
//!
//! Directories are the units of work. A thread that finds nothing to do is hungry; one that has
//! many files before it then gives half of them away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::directory::{OpenDirectory, PendingDirectory};
use crate::limits::MAX_SEARCH_QUEUE_BYTES;

#[derive(Debug)]
pub(super) enum Work {
    Directory(PendingDirectory),
    /// Names in a directory, each with a NUL behind it.
    Files(Arc<OpenDirectory>, Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    change: Condvar,
    hungry: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    work: Vec<Work>,
    /// Of the work that waits.
    bytes: usize,
    /// Threads that may still add to it.
    busy: usize,
}

/// More work than may wait.
#[derive(Debug)]
pub(super) struct Full;

impl Queue {
    pub(super) fn new(first: PendingDirectory) -> Self {
        let queue = Self::default();
        let _ = queue.add([Work::Directory(first)]);
        queue
    }

    /// The next thing to do, once there is something; none when everything is done. A thread that
    /// asks again has done what it was given.
    pub(super) fn next(&self, asks_again: bool) -> Option<Work> {
        let mut state = self.lock();
        if asks_again {
            state.busy -= 1;
        }
        loop {
            if let Some(work) = state.work.pop() {
                state.bytes -= work.bytes();
                state.busy += 1;
                return Some(work);
            }
            if state.busy == 0 {
                self.change.notify_all();
                return None;
            }
            self.hungry.fetch_add(1, Ordering::Relaxed);
            state = self.change.wait(state).unwrap_or_else(PoisonError::into_inner);
            self.hungry.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_hungry(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    pub(super) fn add(&self, work: impl IntoIterator<Item = Work>) -> Result<(), Full> {
        let mut state = self.lock();
        for work in work {
            state.bytes += work.bytes();
            state.work.push(work);
            if self.is_hungry() {
                self.change.notify_one();
            }
        }
        if state.bytes > MAX_SEARCH_QUEUE_BYTES { Err(Full) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    fn bytes(&self) -> usize {
        let text = match self {
            Self::Directory(pending) => pending.path.len(),
            Self::Files(_, names) => names.len(),
        };
        text + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str) -> Work {
        Work::Directory(PendingDirectory { path: path.into(), depth: 0, rules: None })
    }

    #[test]
    fn threads_end_only_when_nothing_waits_and_nobody_is_busy() {
        let queue = Queue::new(PendingDirectory { path: Vec::new(), depth: 0, rules: None });
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut asks_again = false;
                    while let Some(work) = queue.next(asks_again) {
                        asks_again = true;
                        let Work::Directory(pending) = work else { panic!("only directories") };
                        if pending.path.len() < 6 {
                            let below = ["a", "b", "c"].map(|name| {
                                directory(
                                    &(String::from_utf8(pending.path.clone()).unwrap() + name),
                                )
                            });
                            queue.add(below).unwrap();
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let all: usize = (0..=6).map(|level| 3_usize.pow(level)).sum();
        assert_eq!(done.into_inner(), all);
    }

    #[test]
    fn what_waits_is_bounded() {
        let queue = Queue::new(PendingDirectory { path: Vec::new(), depth: 0, rules: None });
        let long = "x".repeat(4_000);
        let mut added = 0;
        while queue.add([directory(&long)]).is_ok() {
            added += 1;
        }
        assert!((1_000..MAX_SEARCH_QUEUE_BYTES / 4_000).contains(&added), "{added}");
    }
}
