//! Seccomp: the engine's filter, and a small one beside it that hides `clone3`, from commands only
//! where the runner needs it itself.

use super::ConfineError;
use crate::stamp;

/// A classic BPF program, ready to be handed to the kernel.
pub(crate) struct Program {
    filters: Vec<libc::sock_filter>,
}

impl Program {
    /// From the hex form of a little-endian `sock_filter` array.
    pub(super) fn from_hex(hex: &str) -> Result<Self, ConfineError> {
        const BYTES: usize = size_of::<libc::sock_filter>();
        let bytes = decode(hex).ok_or(ConfineError::MalformedSeccomp)?;
        if bytes.is_empty() || !bytes.len().is_multiple_of(BYTES) || bytes.len() / BYTES > 0xffff {
            return Err(ConfineError::MalformedSeccomp);
        }
        let filters = bytes.chunks_exact(BYTES).map(|raw| libc::sock_filter {
            code: u16::from_le_bytes([raw[0], raw[1]]),
            jt: raw[2],
            jf: raw[3],
            k: u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]),
        });
        Ok(Self { filters: filters.collect() })
    }

    /// For the kernel; valid while `self` is neither moved out of nor changed.
    pub(crate) fn as_fprog(&self) -> libc::sock_fprog {
        libc::sock_fprog {
            len: u16::try_from(self.filters.len()).expect("checked when it was made"),
            filter: self.filters.as_ptr().cast_mut(),
        }
    }

    /// Puts this thread, and all it will start, under the filter.
    pub(super) fn install(&self) -> Result<(), ConfineError> {
        // SAFETY: PR_SET_NO_NEW_PRIVS takes plain integers.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return Err(ConfineError::last("PR_SET_NO_NEW_PRIVS"));
        }
        let program = self.as_fprog();
        let mode = libc::SECCOMP_MODE_FILTER;
        // SAFETY: program points to filters that outlive the call; the kernel copies them.
        if unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) } != 0 {
            return Err(ConfineError::last("PR_SET_SECCOMP"));
        }
        Ok(())
    }
}

/// Answers `clone3` with ENOSYS: its flags are out of a filter's sight, so commands must fall
/// back to `clone`, whose flags the engine's filter checks. The runner itself needs it to start
/// commands in a v2 cgroup.
pub(super) fn hide_clone3() -> Program {
    let load_number = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0);
    let is_clone3 = libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        // The same number on every architecture.
        k: libc::SYS_clone3 as u32,
    };
    let refuse = statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    let allow = statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW);
    Program { filters: vec![load_number, is_clone3, refuse, allow] }
}

/// The same, and nothing changes its limit of file locks: see [`crate::stamp`].
pub(super) fn hide_clone3_and_keep_stamps() -> Program {
    // Where the kernel puts number and arguments of a call; of these the low halves come first.
    const NUMBER: u32 = 0;
    const ARGUMENTS: [u32; 3] = [16, 24, 32];
    const HALF: u32 = 4;
    const ALLOW: u8 = 12;
    const REFUSE: u8 = 13;
    const HIDE: u8 = 14;
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let answer = |error: i32| statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | error as u32);
    let resource = stamp::RESOURCE;
    let filters = vec![
        load(NUMBER),
        branch(1, libc::SYS_clone3 as u32, HIDE, 2),
        branch(2, libc::SYS_setrlimit as u32, 4, 3),
        branch(3, libc::SYS_prlimit64 as u32, 6, ALLOW),
        // setrlimit(resource, new)
        load(ARGUMENTS[0]),
        branch(5, resource, REFUSE, ALLOW),
        // prlimit64(pid, resource, new or null, old)
        load(ARGUMENTS[1]),
        branch(7, resource, 8, ALLOW),
        load(ARGUMENTS[2]),
        branch(9, 0, 10, REFUSE),
        load(ARGUMENTS[2] + HALF),
        branch(11, 0, ALLOW, REFUSE),
        statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW),
        answer(libc::EPERM),
        answer(libc::ENOSYS),
    ];
    Program { filters }
}

/// The statement at `at` goes on at one of two others, by their places in the program.
fn branch(at: u8, value: u32, equal: u8, unequal: u8) -> libc::sock_filter {
    let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    libc::sock_filter { code, jt: equal - at - 1, jf: unequal - at - 1, k: value }
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn decode(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let value = |digit: u8| (digit as char).to_digit(16);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_survives_its_hex_form() {
        let program = Program::from_hex("0600000000 00ff7f".replace(' ', "").as_str()).unwrap();
        assert_eq!(program.filters.len(), 1);
        assert_eq!(program.filters[0].k, libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn malformed_programs_are_refused() {
        for hex in ["", "06", "060000000000ff7", "zz00000000000000", "é0000000000000000"] {
            assert!(Program::from_hex(hex).is_err(), "{hex:?} was accepted");
        }
    }
}
