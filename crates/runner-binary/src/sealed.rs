//! The runner as an executable that exists in no file system and that nobody can change: one
//! sealed memory file, shared by every machine.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

/// `F_SEAL_EXEC`: the right to execute it stays. From linux/fcntl.h.
const SEAL_EXEC: SealFlags = SealFlags::from_bits_retain(0x20);

pub fn seal(program: &[u8]) -> io::Result<OwnedFd> {
    let file = executable_memory()?;
    let mut rest = program;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::fchmod(&file, Mode::from_bits_retain(0o555))?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    // Where there is no root, its owner is also the workload's user, who could make it unusable for
    // all other machines.
    match rustix::fs::fcntl_add_seals(&file, seals | SEAL_EXEC) {
        // Kernels before 6.3 do not know it.
        Err(rustix::io::Errno::INVAL) => rustix::fs::fcntl_add_seals(&file, seals)?,
        other => other?,
    }
    let readable = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(rustix::fs::open(readable, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn executable_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create("runner", flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the flag, and need none.
        Err(rustix::io::Errno::INVAL) => Ok(rustix::fs::memfd_create("runner", flags)?),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_change_it() {
        let file = seal(b"#!/bin/true\n").unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(std::fs::read(&path).unwrap(), b"#!/bin/true\n");
        assert!(rustix::io::write(&file, b"x").is_err());
        if let Ok(writable) = std::fs::OpenOptions::new().write(true).open(&path) {
            assert!(rustix::io::write(&writable, b"x").is_err());
            assert!(writable.set_len(0).is_err());
        }
    }
}
