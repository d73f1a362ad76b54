//! What takes names that are free, and what exchanges, on a file system that can do neither.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(clippy::duplicate_mod, reason = "each of these tests has its playground")]
#![allow(unsafe_code, reason = "a filter of system calls is set before anything else runs")]

#[path = "batches.rs"]
mod batches;
#[path = "copies.rs"]
mod copies;
mod fewer_calls;
#[path = "links.rs"]
mod links;
#[path = "operations.rs"]
mod operations;
#[path = "trees.rs"]
mod trees;

use fewer_calls::{When, refuse};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Before `main`, so that every thread of every test is under it.
#[used]
#[unsafe(link_section = ".init_array")]
static REFUSE: extern "C" fn() = refuse_flags;

extern "C" fn refuse_flags() {
    const FLAGS: u32 = 4;
    refuse(libc::SYS_renameat2, When::With(FLAGS), libc::EINVAL);
}

#[test]
fn the_file_system_of_these_tests_knows_no_flags_of_renames() {
    for flags in [RenameFlags::NOREPLACE, RenameFlags::EXCHANGE] {
        assert_eq!(renameat_with(CWD, "a", CWD, "b", flags), Err(Errno::INVAL));
    }
}
