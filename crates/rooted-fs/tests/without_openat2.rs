//! Everything that these tests say of a kernel with `openat2`, said again without it.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(clippy::duplicate_mod, reason = "each of these tests has its playground")]
#![allow(unsafe_code, reason = "a filter of system calls is set before anything else runs")]

#[path = "batches.rs"]
mod batches;
#[path = "copies.rs"]
mod copies;
mod fewer_calls;
#[path = "hostile_sequences.rs"]
mod hostile_sequences;
#[path = "links.rs"]
mod links;
#[path = "operations.rs"]
mod operations;
#[path = "race.rs"]
mod race;
#[path = "special_files.rs"]
mod special_files;
#[path = "trees.rs"]
mod trees;
#[path = "walks.rs"]
mod walks;

use fewer_calls::{When, refuse};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Before `main`, so that every thread of every test is under it.
#[used]
#[unsafe(link_section = ".init_array")]
static HIDE: extern "C" fn() = hide_openat2;

extern "C" fn hide_openat2() {
    refuse(libc::SYS_openat2, When::Always, libc::ENOSYS);
}

#[test]
fn the_kernel_of_these_tests_has_no_openat2() {
    let answer = openat2(CWD, ".", OFlags::PATH, Mode::empty(), ResolveFlags::empty());
    assert_eq!(answer.map(drop), Err(Errno::NOSYS));
}
