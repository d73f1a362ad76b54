//! File operations below one directory descriptor.
//!
//! [`Root`] is a directory opened once. Every client path is turned into a [`RelPath`] and then
//! resolved by the kernel from that descriptor with `openat2` and
//! `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS`, or touched as a single name in a directory that was
//! reached so. Where the kernel has no `openat2`, the path is resolved here, one name at a time, with
//! the same meaning. No path is ever resolved from `/` or from the current directory, so neither a
//! path text nor a link planted inside, not even one swapped in during the operation, leads outside.
//! The exception is [`open_absolute`], for the runner's own paths.
//!
//! This crate only knows files. It does no async IO; long work (copying, removing) comes in
//! bounded steps so that a single-threaded caller can do other things in between.

mod batch;
mod children;
mod chmod;
mod contents;
mod copy;
mod copy_tree;
mod descent;
mod draft;
mod error;
mod expected;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod links;
mod list;
mod mkdir;
mod opening;
mod path;
mod pending;
mod regular;
mod remove;
mod rename;
mod renaming;
mod resolve;
mod root;
mod stat;
mod stepwise;
mod walk;

pub use batch::Batch;
pub use error::RootedError;
pub use expected::Expected;
pub use list::{Directory, Entry, Names};
pub use opening::open_absolute;
pub use path::{InvalidPath, RelPath, RootNames};
pub use pending::PendingFile;
pub use regular::RegularFile;
pub use remove::Removal;
pub use rename::Overwrite;
pub use root::Root;
pub use stat::Links;
pub use walk::{Order, Visit, Visitor, walk};

pub use sandbank_protocol::{FileKind, FileStat, FileTag};
