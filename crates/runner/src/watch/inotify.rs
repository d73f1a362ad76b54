//! The kernel's words on directories, which are named by descriptor: through `/proc/self/fd`, as
//! there is no other way, and never by a path that somebody could change meanwhile.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::descriptors;
use crate::limits::WATCH_WORDS_PER_TURN;

/// The same for every directory: watches of one directory share the kernel's.
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

const BUFFER_BYTES: usize = 16 << 10;

pub(super) struct Inotify(AsyncFd<OwnedFd>);

/// One of its words.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) wd: i32,
    pub(super) what: ReadFlags,
    pub(super) cookie: u32,
    /// Of an entry; none when it is about the directory itself.
    pub(super) name: Option<Vec<u8>>,
}

impl Inotify {
    pub(super) fn new() -> io::Result<Self> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        Ok(Self(descriptors::watch(inotify::init(flags)?, Interest::READABLE)?))
    }

    pub(super) fn add(&self, directory: impl AsFd) -> Result<i32, Errno> {
        let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        inotify::add_watch(self.0.get_ref(), path, WANTED)
    }

    /// One that is gone already needs none.
    pub(super) fn remove(&self, wd: i32) {
        let _ = inotify::remove_watch(self.0.get_ref(), wd);
    }

    /// Words that are there, and whether there may be more.
    pub(super) fn words(&self) -> (Vec<Word>, bool) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(self.0.get_ref(), &mut buffer);
        let mut words = Vec::new();
        // Words that were read are not left in the buffer.
        while words.len() < WATCH_WORDS_PER_TURN || !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => words.push(Word {
                    wd: event.wd(),
                    what: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().map(|name| name.to_bytes().to_vec()),
                }),
                Err(Errno::INTR) => {}
                Err(_) => return (words, false),
            }
        }
        (words, true)
    }

    pub(super) async fn readable(&self) {
        match self.0.readable().await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => std::future::pending().await,
        }
    }
}
