//! Which machine an image is for, as configurations and programs name it.

/// Programs that nearly every image has one of: what they are for, the image is for.
pub const PROGRAMS: [&str; 4] = ["bin/sh", "usr/bin/env", "bin/busybox", "usr/bin/bash"];

/// This machine, as image configurations name it.
pub fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// By the head of an ELF program.
pub fn elf_machine(head: &[u8; 20]) -> &'static str {
    let number = match head[5] {
        2 => u16::from_be_bytes([head[18], head[19]]),
        _ => u16::from_le_bytes([head[18], head[19]]),
    };
    match number {
        3 => "386",
        8 => "mips",
        21 => "ppc64le",
        22 => "s390x",
        40 => "arm",
        62 => "amd64",
        183 => "arm64",
        243 => "riscv64",
        _ => "another machine",
    }
}
