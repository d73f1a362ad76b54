//! What an image archive holds: a root file system, the output of `docker save`, or an OCI layout;
//! plain, gzip or zstd.
//!
//! Archives are hostile input, and the same to every engine: what one refuses, none takes. Nothing
//! is unpacked here. [`Archive`] is a file with an index, [`plan`] says which layers it has and for
//! which machine, [`TarStream`] reads one layer.

mod archive;
mod budget;
pub mod compression;
mod hashed;
pub mod limits;
mod machine;
mod manifest;

pub use archive::{Archive, Format, Member, Section};
pub use budget::Budget;
pub use hashed::Hashed;
pub use limits::ImportLimits;
pub use machine::{PROGRAMS, elf_machine, machine};
pub use manifest::{Plan, configured, plan};
pub use sandbank_tar_stream::{Entry, Kind, Skip, TarError, TarStream};

use sandbank_engine::EngineError;

/// The archive is at fault.
pub fn bad(reason: impl Into<String>) -> EngineError {
    EngineError::BadImage(reason.into())
}

/// It cannot be read as a tar archive.
pub fn damaged(error: TarError) -> EngineError {
    bad(error.to_string())
}
