//! The seccomp profile of machines: one table, as the BPF program that every runner installs, and
//! as the profile that Docker puts around it.
//!
//! A system call is allowed by name, allowed with certain arguments, refused with EPERM, or, when
//! it is newer than this list, refused with ENOSYS so that libraries fall back. A foreign
//! architecture's call kills the process: its numbers mean something else.
//!
//! Plain numbers are found by binary search, because the kernel runs a new program once for every
//! number it knows and that time is part of a machine's start. Argument rules are compiled by
//! seccompiler.

mod arguments;
mod docker;
mod names;
mod search;

pub use docker::docker_profile;

use seccompiler::sock_filter;

/// The program as the runner's configuration wants it: `sock_filter` array, little-endian, as hex.
pub fn program_hex() -> String {
    let mut hex = String::new();
    for instruction in program() {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&instruction.code.to_le_bytes());
        bytes[2] = instruction.jt;
        bytes[3] = instruction.jf;
        bytes[4..].copy_from_slice(&instruction.k.to_le_bytes());
        for byte in bytes {
            use std::fmt::Write;
            let _ = write!(hex, "{byte:02x}");
        }
    }
    hex
}

fn program() -> Vec<sock_filter> {
    let by_argument = arguments::program();
    let conditional = arguments::numbers();
    let mut program = search::head();
    program.extend(search::tree(&names::allowed_numbers(), &conditional));
    program.extend(by_argument);
    program
}

#[cfg(test)]
mod tests;
