//! A kernel that has less than the one we are on: a filter of this process's system calls.

use libc::sock_filter;

/// When a call is refused.
#[allow(dead_code, reason = "each test file uses one")]
pub(crate) enum When {
    Always,
    /// When this argument is not 0.
    With(u32),
}

/// For this thread and all that it starts.
pub(crate) fn refuse(call: libc::c_long, when: When, errno: i32) {
    // Where the kernel puts a call's number, and the low half of its first argument.
    const NUMBER: u32 = 0;
    const ARGUMENTS: u32 = 16;
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let equal = |value, jt, jf| {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        sock_filter { code, jt, jf, k: value }
    };
    let refused = statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | errno as u32);
    let allowed = statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW);
    let mut filters = match when {
        When::Always => vec![load(NUMBER), equal(call as u32, 0, 1), refused, allowed],
        When::With(argument) => vec![
            load(NUMBER),
            equal(call as u32, 0, 2),
            load(ARGUMENTS + 8 * argument),
            equal(0, 0, 1),
            allowed,
            refused,
        ],
    };
    let program = libc::sock_fprog { len: filters.len() as u16, filter: filters.as_mut_ptr() };
    // SAFETY: the first takes plain integers, the second a program that outlives the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
    }
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}
