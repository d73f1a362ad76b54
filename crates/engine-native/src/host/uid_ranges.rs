//! Whose each range of user ids is.
//!
//! A range is a symbolic link to the name of its instance: made whole or not at all, and still
//! there when the daemon is not, like the machine that uses it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{DAEMON, Host};
use crate::limits::{UID_BASE, UID_RANGE, UID_SLOTS};

const UID_RANGES: &str = "uid-range-";

/// What became of the ranges of the daemon before this one.
#[derive(Debug)]
pub(crate) struct KeptRanges {
    /// Another's by now.
    pub(crate) lost: Vec<u32>,
    /// Of processes without a record: some of the dead daemon's that are about to end, or a machine
    /// that is about to be found and destroyed. Nobody else may have them meanwhile.
    pub(crate) leftovers: BTreeSet<u32>,
}

impl Host {
    /// False when the range is another instance's.
    pub(crate) fn claim(&self, slot: u32) -> io::Result<bool> {
        let path = self.range(slot);
        match std::os::unix::fs::symlink(&self.instance, &path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(owner(&path).is_some_and(|owner| owner == self.instance))
            }
            Err(error) => Err(error),
        }
    }

    /// A range that is another's by now stays so.
    pub(crate) fn release(&self, slot: u32) {
        let path = self.range(slot);
        if owner(&path).is_some_and(|owner| owner == self.instance) {
            let _ = fs::remove_file(path);
        }
    }

    /// Has exactly these ranges, those of the machines that are there: what the daemon before this
    /// one had claimed ahead is given back.
    pub(crate) fn keep(&self, slots: &BTreeSet<u32>) -> io::Result<KeptRanges> {
        let mut leftovers: BTreeSet<u32> = self.ranges_of(&self.instance).into_iter().collect();
        leftovers.retain(|slot| !slots.contains(slot));
        self.release_unused(&mut leftovers)?;
        let mut lost = Vec::new();
        for slot in slots {
            if !self.claim(*slot)? {
                lost.push(*slot);
            }
        }
        Ok(KeptRanges { lost, leftovers })
    }

    /// Gives back those of which no process has an id any more; the others remain.
    pub(crate) fn release_unused(&self, slots: &mut BTreeSet<u32>) -> io::Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let used = used_slots()?;
        slots.iter().filter(|slot| !used.contains(slot)).for_each(|slot| self.release(*slot));
        slots.retain(|slot| used.contains(slot));
        Ok(())
    }

    /// Clears away what dead daemons left, with `sweep` for what is kept elsewhere: it is told an
    /// instance that was here and whose daemon is not running, and says whether all is gone.
    pub(crate) fn clear_dead(&self, sweep: impl Fn(&str) -> bool) {
        let ranges =
            self.names(UID_RANGES).map(|slot| self.dir.join(UID_RANGES.to_owned() + &slot));
        let owners = ranges.filter_map(|path| owner(&path));
        let known: BTreeSet<String> = self.names(DAEMON).chain(owners).collect();
        for instance in known.into_iter().filter(|instance| *instance != self.instance) {
            let Some(dead) = self.hold_dead(&instance) else { continue };
            let swept = sweep(&instance);
            let Ok(used) = used_slots() else { continue };
            let mut cleared = swept;
            for slot in self.ranges_of(&instance) {
                // A machine that was being made when its daemon died does not show its range yet.
                if !swept || used.contains(&slot) {
                    cleared = false;
                } else {
                    let _ = fs::remove_file(self.range(slot));
                }
            }
            if cleared {
                dead.forget();
            }
        }
    }

    fn ranges_of(&self, instance: &str) -> Vec<u32> {
        let slots = self.names(UID_RANGES).filter_map(|slot| slot.parse().ok());
        slots.filter(|slot| owner(&self.range(*slot)).as_deref() == Some(instance)).collect()
    }

    fn range(&self, slot: u32) -> PathBuf {
        self.dir.join(format!("{UID_RANGES}{slot}"))
    }
}

fn owner(range: &Path) -> Option<String> {
    fs::read_link(range).ok()?.into_os_string().into_string().ok()
}

/// Ranges of which some process has an id: a machine's first process has one until it ends.
fn used_slots() -> io::Result<BTreeSet<u32>> {
    let processes = fs::read_dir("/proc")?.flatten();
    let slots = processes
        .filter_map(|process| used_slot(&fs::read_to_string(process.path().join("status")).ok()?));
    Ok(slots.collect())
}

/// That of a process, by its `/proc/<pid>/status`. One that has ended uses nothing, however long
/// its parent, often the host's first process, takes to notice; unless only its first thread has.
fn used_slot(status: &str) -> Option<u32> {
    let first = |key| {
        let line = status.lines().find_map(|line: &str| line.strip_prefix(key))?;
        line.split_whitespace().next()
    };
    let has_ended = matches!(first("State:")?, "Z" | "X") && first("Threads:") == Some("1");
    let id: u32 = first("Uid:")?.parse().ok()?;
    let slot = id.checked_sub(UID_BASE)? / UID_RANGE;
    (slot < UID_SLOTS && !has_ended).then_some(slot)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::lock_name;
    use super::super::tests::{enter, kill};
    use super::*;

    #[test]
    fn two_daemons_never_have_the_same_range() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (enter(dir.path()), enter(dir.path()));
        assert!(one.claim(7).unwrap() && one.claim(7).unwrap());
        assert!(!two.claim(7).unwrap());
        assert!(two.claim(8).unwrap());
        two.release(7);
        assert!(!two.claim(7).unwrap(), "it was not its to release");
        one.release(7);
        assert!(two.claim(7).unwrap());
    }

    #[test]
    fn what_a_dead_daemon_left_is_cleared_and_what_a_living_one_has_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (living, dead, own) = (enter(dir.path()), enter(dir.path()), enter(dir.path()));
        assert!(living.claim(1).unwrap() && dead.claim(2).unwrap() && own.claim(3).unwrap());
        let dead = kill(dead);
        let swept = RefCell::new(Vec::new());
        own.clear_dead(|instance| {
            swept.borrow_mut().push(instance.to_owned());
            true
        });
        assert_eq!(*swept.borrow(), std::slice::from_ref(&dead));
        assert!(!own.claim(1).unwrap());
        assert!(own.claim(2).unwrap());
        assert!(!dir.path().join(lock_name(&dead)).exists());
        assert!(dir.path().join(lock_name(&living.instance)).exists());
    }

    #[test]
    fn a_daemon_that_comes_back_keeps_the_ranges_of_its_machines_only() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (enter(dir.path()), enter(dir.path()));
        assert!(own.claim(1).unwrap() && own.claim(2).unwrap() && other.claim(3).unwrap());
        let kept = own.keep(&BTreeSet::from([2, 3])).unwrap();
        assert_eq!((kept.lost, kept.leftovers), (vec![3], BTreeSet::new()));
        assert!(other.claim(1).unwrap(), "nobody uses it");
        assert!(!other.claim(2).unwrap());
    }

    #[test]
    fn ranges_stay_taken_while_a_dead_daemons_processes_live() {
        let dir = tempfile::tempdir().unwrap();
        let (dead, own) = (enter(dir.path()), enter(dir.path()));
        assert!(dead.claim(2).unwrap());
        kill(dead);
        own.clear_dead(|_| false);
        assert!(!own.claim(2).unwrap());
        own.clear_dead(|_| true);
        assert!(own.claim(2).unwrap());
    }

    fn process_in(slot: u32) -> std::process::Child {
        use std::os::unix::process::CommandExt;
        let mut machine = std::process::Command::new("sleep");
        machine.arg("60").uid(UID_BASE + slot * UID_RANGE + 5).spawn().unwrap()
    }

    fn end(mut process: std::process::Child) {
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn is_no_root() -> bool {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root {
            println!("skipped: another user id needs root");
        }
        !is_root
    }

    #[test]
    fn a_range_that_a_dying_process_still_has_is_given_back_after_it() {
        if is_no_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (enter(dir.path()), enter(dir.path()));
        let slot = UID_SLOTS - 2;
        assert!(own.claim(slot).unwrap());
        let dying = process_in(slot);
        let mut leftovers = own.keep(&BTreeSet::new()).unwrap().leftovers;
        let taken = !other.claim(slot).unwrap();
        own.release_unused(&mut leftovers).unwrap();
        let still = leftovers.clone();
        end(dying);
        assert!(taken && still == BTreeSet::from([slot]), "{still:?}");
        own.release_unused(&mut leftovers).unwrap();
        assert!(leftovers.is_empty() && other.claim(slot).unwrap());
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_uses_no_range() {
        if is_no_root() {
            return;
        }
        let slot = UID_SLOTS - 3;
        let mut dead = process_in(slot);
        assert!(used_slots().unwrap().contains(&slot));
        dead.kill().unwrap();
        let status = format!("/proc/{}/status", dead.id());
        while !fs::read_to_string(&status).unwrap().contains("State:\tZ") {
            std::thread::yield_now();
        }
        let used = used_slots().unwrap();
        dead.wait().unwrap();
        assert!(!used.contains(&slot), "a zombie keeps it");
        let of_threads = format!("State:\tZ (zombie)\nUid:\t{UID_BASE}\t0\nThreads:\t2\n");
        assert_eq!(used_slot(&of_threads), Some(0), "only its first thread has ended");
    }

    #[test]
    fn the_range_of_a_machine_that_outlives_its_daemon_stays_taken() {
        if is_no_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (gone, own) = (enter(dir.path()), enter(dir.path()));
        let slot = UID_SLOTS - 1;
        assert!(gone.claim(slot).unwrap());
        kill(gone);
        let machine = process_in(slot);
        own.clear_dead(|_| true);
        let taken = !own.claim(slot).unwrap();
        end(machine);
        assert!(taken);
        own.clear_dead(|_| true);
        assert!(own.claim(slot).unwrap());
    }
}
