//! A process that is told from a later one with the same number.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Ticks from the boot to its start.
    pub(crate) started: u64,
    /// Of the kernel that counts them.
    pub(crate) boot: String,
}

/// What the kernel says of a process that ends while it is looked at.
const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();

pub(crate) struct Stat {
    pub(crate) parent: i32,
    pub(crate) started: u64,
    pub(crate) zombie: bool,
}

impl Process {
    /// The one that has this number now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        let stat = stat(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, started: stat.started, boot: boot_id()? })
    }

    /// As far as it can be told.
    pub(crate) fn is_alive(&self) -> bool {
        self.look().unwrap_or(false)
    }

    /// Whether it is alive, or why nobody can tell.
    pub(crate) fn look(&self) -> io::Result<bool> {
        if boot_id()? != self.boot {
            return Ok(false);
        }
        match fs::read(format!("/proc/{}/stat", self.pid)) {
            Ok(text) => {
                let stat = parse(&text);
                Ok(stat.is_some_and(|stat| stat.started == self.started && !stat.zombie))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A descriptor of this very process; none when it is gone.
    fn open(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(self.pid)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Looked at after it was opened: from here on the number cannot become another's unseen.
        self.is_alive().then_some(descriptor)
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.open() {
            Some(descriptor) => Ok(pidfd_send_signal(descriptor, signal)?),
            None => Ok(()),
        }
    }
}

pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state ppid … starttime …`; the name may contain anything, even `)`.
fn parse(stat: &[u8]) -> Option<Stat> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let zombie = matches!(*fields.first()?, "Z" | "X");
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        zombie,
    })
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_with_its_number() {
        let own = Process::of(std::process::id().cast_signed()).unwrap();
        assert!(own.is_alive() && own.open().is_some());
        let recycled = Process { started: own.started + 1, ..own.clone() };
        assert!(!recycled.is_alive() && recycled.open().is_none());
        recycled.signal(Signal::KILL).unwrap();
        let of_another_boot = Process { boot: "another".into(), ..own };
        assert!(!of_another_boot.is_alive());
        of_another_boot.signal(Signal::KILL).unwrap();
    }

    #[test]
    fn a_name_cannot_forge_the_fields() {
        let text = "42 (a) Z 1 (b) S 7 8 9 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 777 9 9";
        let stat = parse(text.as_bytes()).unwrap();
        assert_eq!((stat.parent, stat.started, stat.zombie), (7, 777, false));
    }
}
