//! The first part of the program: architecture, then the number.

use seccompiler::sock_filter;

use super::names::LAST_KNOWN;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_NOT_BELOW: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets in the kernel's `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
pub(super) const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
pub(super) const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
pub(super) const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

/// x32 programs run on the native architecture with this bit in the number.
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Return(u32),
    /// Decided by the part of the program that follows.
    ByArgument,
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

pub(super) fn head() -> Vec<sock_filter> {
    let native = [
        instruction(LOAD, 0, 0, ARCHITECTURE),
        instruction(JUMP_EQUAL, 1, 0, NATIVE),
        instruction(RETURN, 0, 0, KILL),
        instruction(LOAD, 0, 0, NUMBER),
    ];
    native.into_iter().chain(x32()).collect()
}

#[cfg(target_arch = "x86_64")]
fn x32() -> [sock_filter; 2] {
    [instruction(JUMP_NOT_BELOW, 0, 1, X32_BIT), instruction(RETURN, 0, 0, KILL)]
}

#[cfg(not(target_arch = "x86_64"))]
fn x32() -> [sock_filter; 0] {
    []
}

/// Returns for every number but those in `by_argument`, which continue after it.
pub(super) fn tree(allowed: &[i64], by_argument: &[i64]) -> Vec<sock_filter> {
    let verdict = |number: i64| match number {
        _ if by_argument.contains(&number) => Verdict::ByArgument,
        _ if allowed.contains(&number) => Verdict::Return(ALLOW),
        _ if number > LAST_KNOWN => Verdict::Return(UNKNOWN),
        _ => Verdict::Return(REFUSE),
    };
    let mut ranges: Vec<(u32, Verdict)> = Vec::new();
    for number in 0..=LAST_KNOWN + 1 {
        let verdict = verdict(number);
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((number as u32, verdict));
        }
    }
    let length = tree_length(&ranges);
    let mut program = Vec::with_capacity(length);
    build(&ranges, length, &mut program);
    program
}

/// One instruction per range, and one jump between each two.
fn tree_length(ranges: &[(u32, Verdict)]) -> usize {
    2 * ranges.len() - 1
}

fn build(ranges: &[(u32, Verdict)], end: usize, program: &mut Vec<sock_filter>) {
    if let [(_, verdict)] = ranges {
        program.push(match verdict {
            Verdict::Return(action) => instruction(RETURN, 0, 0, *action),
            Verdict::ByArgument => instruction(JUMP, 0, 0, (end - program.len() - 1) as u32),
        });
        return;
    }
    let (below, above) = ranges.split_at(ranges.len() / 2);
    let skip = u8::try_from(tree_length(below)).expect("the list has fewer than 256 ranges");
    program.push(instruction(JUMP_NOT_BELOW, skip, 0, above[0].0));
    build(below, end, program);
    build(above, end, program);
}
