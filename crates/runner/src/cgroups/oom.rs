//! Which commands the kernel killed because memory ran out.
//!
//! It counts the kills in a sandbox and names nobody. So a command that died of SIGKILL claims a
//! kill: one that nobody else has claimed, and that was seen too recently to be somebody else's
//! who has not died yet.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::time::Instant;

use crate::limits::OOM_DEATH_LIMIT;

pub(crate) struct OomKills {
    file: OwnedFd,
    ledger: RefCell<Ledger>,
}

/// How the ledger stood when a command began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OomMark {
    kills: u64,
    claimed: u64,
}

#[derive(Debug, Default)]
struct Ledger {
    kills: u64,
    /// When the last of them was first seen.
    grown: Option<Instant>,
    claimed: u64,
}

impl OomKills {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self { file, ledger: RefCell::default() }
    }

    /// To be called when a command begins and when one ends, so that no kill is taken for a
    /// newer one.
    pub(crate) fn look(&self) -> OomMark {
        let mut ledger = self.ledger.borrow_mut();
        if let Some(kills) = read(&self.file) {
            ledger.see(kills, Instant::now());
        }
        OomMark { kills: ledger.kills, claimed: ledger.claimed }
    }

    /// Whether a command that began at `mark` and has just died of SIGKILL was killed for memory.
    pub(crate) fn claim(&self, mark: OomMark) -> bool {
        self.ledger.borrow_mut().claim(mark, Instant::now())
    }
}

/// Whether it is a file that counts kills.
pub(super) fn tells(file: &OwnedFd) -> bool {
    read(file).is_some()
}

/// None when the file does not tell.
fn read(file: &OwnedFd) -> Option<u64> {
    let mut text = [0; 1024];
    let length = rustix::io::pread(file, &mut text, 0).ok()?;
    parse(std::str::from_utf8(&text[..length]).ok()?)
}

impl Ledger {
    fn see(&mut self, kills: u64, now: Instant) {
        if kills > self.kills {
            (self.kills, self.grown) = (kills, Some(now));
        }
    }

    fn claim(&mut self, mark: OomMark, now: Instant) -> bool {
        let recent = self.grown.is_some_and(|seen| now.duration_since(seen) <= OOM_DEATH_LIMIT);
        let free = self.kills - mark.kills > self.claimed - mark.claimed;
        self.claimed += u64::from(recent && free);
        recent && free
    }
}

/// v1 `memory.oom_control` and v2 `memory.events` both have a line `oom_kill N`.
fn parse(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kill_is_one_commands() {
        let now = Instant::now();
        let (mut ledger, bystander) = (Ledger::default(), OomMark::default());
        assert!(!ledger.claim(bystander, now), "nobody was killed for memory");
        ledger.see(2, now);
        assert!(ledger.claim(OomMark::default(), now));
        assert!(ledger.claim(OomMark::default(), now), "two died of it at once");
        assert!(!ledger.claim(bystander, now), "the third died of something else");
        let later = OomMark { kills: ledger.kills, claimed: ledger.claimed };
        ledger.see(3, now);
        assert!(ledger.claim(later, now));
        assert!(!ledger.claim(later, now));
    }

    #[test]
    fn an_old_kill_of_a_grandchild_is_nobodys() {
        let began = Instant::now();
        let mut ledger = Ledger::default();
        ledger.see(1, began);
        ledger.see(1, began + OOM_DEATH_LIMIT);
        let later = began + OOM_DEATH_LIMIT * 2;
        assert!(!ledger.claim(OomMark::default(), later));
        ledger.see(2, later);
        assert!(ledger.claim(OomMark::default(), later));
    }

    #[test]
    fn both_versions_of_the_file_are_understood() {
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        let v2 = "low 0\nhigh 0\nmax 12\noom 4\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(parse(v1), Some(3));
        assert_eq!(parse(v2), Some(2));
        assert_eq!(parse("something else"), None);
    }
}
