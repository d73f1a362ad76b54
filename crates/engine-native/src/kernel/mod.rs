//! Thin wrappers around the syscalls that rustix lacks. Mechanism only, no policy.

pub(crate) mod clone;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod process;
pub(crate) mod watched;
