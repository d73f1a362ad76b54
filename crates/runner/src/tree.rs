//! Everything a command started: found through its cgroup, or else by walking `/proc`.
//!
//! The walk stays among the runner's own descendants (the runner adopts orphans), so it never
//! touches a process of anybody else. A stamp says whose each of them is. Where the kernel refused
//! it, group, session, environment and descent do, and miss what has left and erased all of these.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::cgroups::Lease;
use crate::commands::environment::MARKER;
use crate::limits::STOPPING_ROUNDS;
use crate::stamp::Stamp;

pub(crate) struct Tree {
    lease: Option<Lease>,
    stamp: Option<Stamp>,
    leader: i32,
    marker: Vec<u8>,
}

impl Tree {
    pub(crate) fn new(
        id: &impl std::fmt::Display,
        leader: i32,
        lease: Option<Lease>,
        stamp: Option<Stamp>,
    ) -> Self {
        Self { lease, stamp, leader, marker: format!("{MARKER}={id}").into_bytes() }
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// Signals every process. `leader_lives` says that the leader's pid is still its own. Without
    /// a cgroup, a kill that is not waited for may leave something stopped.
    pub(crate) async fn signal(
        &self,
        signal: i32,
        leader_lives: impl Fn() -> bool,
    ) -> io::Result<()> {
        let signalled = match &self.lease {
            Some(lease) => lease.group().map_or(Ok(()), |group| group.signal(signal, self.leader)),
            None if signal == libc::SIGKILL => {
                let found = kill_all(|| self.walk(leader_lives()), self.leader).await;
                if found { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
            }
            None => self.signal_found(signal, leader_lives()),
        };
        // The files that tell may be out of reach; the process group needs none.
        if signalled.is_err() && leader_lives() { send(-self.leader, signal) } else { Ok(()) }
    }

    /// Those that one search finds.
    pub(crate) fn signal_found(&self, signal: i32, leader_lives: bool) -> io::Result<()> {
        let members = self.walk(leader_lives);
        if members.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        send_all(members, signal, self.leader);
        Ok(())
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self, leader_lives: bool) -> bool {
        match &self.lease {
            Some(lease) => lease.group().is_none_or(|group| group.is_empty()),
            None => self.walk(leader_lives).is_empty(),
        }
    }

    /// Everything but the leader, which lives.
    pub(crate) fn started(&self) -> Vec<i32> {
        let group = self.lease.as_ref().and_then(Lease::group);
        let members = group.and_then(|group| group.members().ok());
        let mut members = members.unwrap_or_else(|| self.walk(true));
        members.retain(|pid| *pid != self.leader);
        members
    }

    fn walk(&self, leader_lives: bool) -> Vec<i32> {
        let processes = processes();
        let own = descendants(&processes, &[std::process::id() as i32]);
        // A group or session keeps its number reserved; only a new process could have taken it.
        let leader_is_ours = leader_lives || !processes.contains_key(&self.leader);
        // Read once: it is a file of each.
        let stamped: HashMap<i32, Option<bool>> =
            own.iter().map(|pid| (*pid, self.is_stamped(*pid))).collect();
        let stamped = |pid: i32| stamped.get(&pid).copied().flatten();
        let marked = own.iter().copied().filter(|pid| {
            let Some(process) = processes.get(pid) else { return false };
            let of_leader = [*pid, process.group, process.session].contains(&self.leader);
            let is_ours = || (leader_is_ours && of_leader) || self.is_marked(*pid);
            stamped(*pid).unwrap_or_else(is_ours)
        });
        let roots: Vec<i32> = marked.collect();
        let mut members = descendants(&processes, &roots);
        members.extend(roots);
        members.retain(|pid| processes.get(pid).is_some_and(|process| !process.zombie));
        members.retain(|pid| stamped(*pid).unwrap_or(true));
        members.into_iter().collect()
    }

    /// None where stamps say nothing.
    fn is_stamped(&self, pid: i32) -> Option<bool> {
        self.stamp?.is_of(pid)
    }

    fn is_marked(&self, pid: i32) -> bool {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == self.marker)
    }
}

/// Children of a process with one thread; None where the kernel does not tell.
pub(crate) fn children(pid: i32) -> Option<Vec<i32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    text.split_ascii_whitespace().map(|pid| pid.parse().ok()).collect()
}

/// The leader first: it shall die of the signal, and not of its children's death.
pub(crate) fn send_all(mut members: Vec<i32>, signal: i32, leader: i32) {
    members.sort_by_key(|pid| *pid != leader);
    members.into_iter().for_each(|pid| drop(send(pid, signal)));
}

/// Kills all of them, and whether there were any. They are stopped first: what forks faster than
/// it is killed would be missed for ever, what is stopped forks no more. A search takes as long as
/// there are processes, so the runner's other clients have their turn between two of them.
pub(crate) async fn kill_all(members: impl Fn() -> Vec<i32>, leader: i32) -> bool {
    let mut stopped = HashSet::new();
    for round in 1.. {
        let found = members();
        let fresh: Vec<i32> = found.iter().copied().filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() || round == STOPPING_ROUNDS {
            // At once: later one of these numbers may be somebody else's.
            send_all(found, libc::SIGKILL, leader);
            break;
        }
        fresh.into_iter().for_each(|pid| drop(send(pid, libc::SIGSTOP)));
        tokio::task::yield_now().await;
    }
    !stopped.is_empty()
}

pub(crate) fn send(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes plain integers.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

struct Process {
    parent: i32,
    group: i32,
    session: i32,
    zombie: bool,
}

fn processes() -> HashMap<i32, Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse_stat(&stat)?))
    })
    .collect()
}

/// `pid (name) state ppid pgrp session …`; the name may contain anything, even `)`.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let mut number = || fields.next()?.parse().ok();
    Some(Process { parent: number()?, group: number()?, session: number()?, zombie })
}

/// All processes below `roots`, without these.
fn descendants(processes: &HashMap<i32, Process>, roots: &[i32]) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, process) in processes {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = HashSet::new();
    let mut open: Vec<i32> = roots.to_vec();
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_process_name_cannot_forge_its_parent() {
        let process = parse_stat(b"42 (a) Z 1 1 (b) S 7 8 9 0 -1").unwrap();
        assert_eq!((process.parent, process.group, process.session), (7, 8, 9));
        assert!(!process.zombie);
        assert!(parse_stat(b"42 (a").is_none());
    }

    #[tokio::test]
    async fn whoever_waits_for_the_runner_has_a_turn_between_two_searches() {
        let (searches, turns) = (Cell::new(0), Cell::new(0));
        // As of something that forks faster than it is found; there are no such processes.
        let members = || {
            searches.set(searches.get() + 1);
            assert!(turns.get() + 1 >= searches.get(), "it searches without a pause");
            (0..searches.get()).map(|n| i32::MAX - n).collect()
        };
        let over = Cell::new(false);
        let others = async {
            while !over.get() {
                turns.set(turns.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        let killing = async {
            assert!(kill_all(members, 0).await);
            over.set(true);
        };
        tokio::join!(killing, others);
        assert_eq!(searches.get(), STOPPING_ROUNDS as i32);
    }

    #[test]
    fn descendants_of_descendants_are_found() {
        let process = |parent| Process { parent, group: 0, session: 0, zombie: false };
        let processes =
            [(2, 1), (3, 2), (4, 3), (5, 1)].map(|(pid, parent)| (pid, process(parent)));
        let found = descendants(&processes.into(), &[2]);
        assert_eq!(found, HashSet::from([3, 4]));
    }
}
