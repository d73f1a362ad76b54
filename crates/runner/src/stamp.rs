//! Whose a process is, where commands have no cgroups of their own.
//!
//! Every command and every shell gets a number that the kernel passes on to all it will ever start,
//! through forks, sessions and changed environments: as its limit of file locks, which the kernel
//! has not looked at for twenty years. Where there is a seccomp filter, nothing in the sandbox can
//! change it.

use std::cell::Cell;
use std::io;

pub(crate) const RESOURCE: u32 = libc::RLIMIT_LOCKS;

/// Never a real limit, and below infinity.
const MARK: u64 = 1 << 62;
const RUNNER_BITS: u64 = !(u32::MAX as u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

/// Hands out stamps. A runner inside of a sandbox has other ones than the runner around it.
pub(crate) struct Stamps {
    next: Cell<u64>,
}

impl Stamps {
    pub(crate) fn new() -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let runner = u64::from_ne_bytes(random) & RUNNER_BITS & (MARK - 1);
        Ok(Self { next: Cell::new(MARK | runner) })
    }

    pub(crate) fn next(&self) -> Stamp {
        self.next.set(self.next.get() + 1);
        Stamp(self.next.get())
    }
}

impl Stamp {
    pub(crate) fn as_limit(self) -> libc::rlimit {
        libc::rlimit { rlim_cur: self.0, rlim_max: self.0 }
    }

    /// Whether the process has this stamp; None when it has none of this runner's.
    pub(crate) fn is_of(self, pid: i32) -> Option<bool> {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let theirs = parse(&limits)?;
        (theirs & RUNNER_BITS == self.0 & RUNNER_BITS).then_some(theirs == self.0)
    }
}

/// The hard limit, which nobody can raise.
fn parse(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_understood() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max address space         unlimited            unlimited            bytes\n\
                      Max file locks            5                    4611686018427387911  locks\n";
        assert_eq!(parse(limits), Some(4_611_686_018_427_387_911));
        assert_eq!(
            parse("Max file locks            unlimited            unlimited     locks"),
            None
        );
        assert_eq!(parse(""), None);
    }

    #[test]
    fn stamps_differ_and_are_limits() {
        let stamps = Stamps::new().unwrap();
        let (one, two) = (stamps.next(), stamps.next());
        assert_ne!(one, two);
        assert!(one.as_limit().rlim_max < libc::RLIM_INFINITY);
        let own = std::process::id() as i32;
        assert_eq!(one.is_of(own), None, "the tests are nobody's command");
    }
}
