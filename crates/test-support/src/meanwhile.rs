//! Something that goes on beside a test, as fast as it can, until it is dropped.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// A thread that does the same again and again.
#[derive(Debug)]
pub struct Meanwhile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meanwhile {
    pub fn repeat(mut work: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                work();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(joined.is_none_or(|joined| joined.is_ok()), "what went on meanwhile panicked");
        }
    }
}

/// Swaps pairs of names with `renameat2(EXCHANGE)`: what an attacker does who hopes that a path is
/// looked at twice.
#[derive(Debug)]
pub struct Swapper {
    swaps: Arc<AtomicU64>,
    _swapping: Meanwhile,
}

impl Swapper {
    pub fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        let swaps = Arc::new(AtomicU64::new(0));
        let counted = swaps.clone();
        let swapping = Meanwhile::repeat(move || {
            for (one, other) in &pairs {
                if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { swaps, _swapping: swapping }
    }

    /// How many there were: a test that saw none has shown nothing.
    pub fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Relaxed)
    }
}
