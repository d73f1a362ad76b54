//! Machines made of namespaces on this host.
//!
//! [`NativeEngine`] prepares ingredients (user and network namespaces, cgroups, idmapped mounts, a
//! listening socket) and asks the *spawner*, a single-threaded child process, to clone a machine
//! from them. All mounts are made as real root inside the new mount namespace; the machine's user
//! namespace is entered last. This crate knows nothing of commands, files or HTTP.

#![allow(
    unsafe_code,
    reason = "clone3, mount_setattr and execveat have no safe wrapper that fits a spawner"
)]

mod cgroup;
mod host;
mod image;
mod kernel;
mod lifecycle;
mod limits;
mod machine;
mod network;
mod settings;
mod spawner;
mod storage;
mod user_namespace;

pub use kernel::memory::{give_back_freed_memory, keep_freed_memory};
pub use lifecycle::NativeEngine;
pub use network::{InvalidSubnet, Subnet};
pub use settings::{CgroupChoice, NativeSettings, Omitted, SpawnerProgram};
pub use spawner::{SPAWNER_ARGUMENT, SPAWNER_FD, spawner_main};
pub use storage::StorageKind;

#[doc(hidden)]
pub use spawner::become_spawner_if_asked;

/// For fuzz targets only.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub fn archives(data: &[u8]) {
        crate::image::fuzzing::archives(data);
    }
}
