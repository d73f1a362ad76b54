//! One cgroup directory: who is in it, and how to signal or kill all of them.

use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use sandbank_protocol::CgroupVersion;

use crate::privileges::{AsRunner, FileIdentity};
use crate::tree::send_all;

pub(crate) struct Group {
    directory: OwnedFd,
    version: CgroupVersion,
    identity: FileIdentity,
    /// Changes with every owner; see [`super::Lease`].
    turn: Cell<u64>,
    /// Open from the first command on: the group serves many.
    join_file: OnceCell<OwnedFd>,
}

impl Group {
    pub(super) fn new(directory: OwnedFd, version: CgroupVersion, identity: FileIdentity) -> Self {
        Self { directory, version, identity, turn: Cell::new(0), join_file: OnceCell::new() }
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.get()
    }

    pub(super) fn next_turn(&self) -> u64 {
        self.turn.set(self.turn.get() + 1);
        self.turn.get()
    }

    pub(crate) fn version(&self) -> CgroupVersion {
        self.version
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The file a child writes "0" into to join. On v1 it is `tasks`: `cgroup.procs` takes a
    /// lock over all processes of the host, which costs milliseconds.
    pub(crate) fn join_file(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(file) = self.join_file.get() {
            return Ok(file.as_fd());
        }
        let name = match self.version {
            CgroupVersion::V1 => "tasks",
            CgroupVersion::V2 => "cgroup.procs",
        };
        let file = self.open(name, OFlags::WRONLY)?;
        Ok(self.join_file.get_or_init(|| file).as_fd())
    }

    /// Processes in the group, as the runner numbers them.
    pub(crate) fn members(&self) -> io::Result<Vec<i32>> {
        let mut text = String::new();
        let file = self.open("cgroup.procs", OFlags::RDONLY)?;
        io::Read::read_to_string(&mut std::fs::File::from(file), &mut text)?;
        // A process of another pid namespace reads as 0 and is none of ours.
        Ok(text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect())
    }

    /// In doubt it is not.
    pub(crate) fn is_empty(&self) -> bool {
        self.members().is_ok_and(|members| members.is_empty())
    }

    pub(crate) fn signal(&self, signal: i32, leader: i32) -> io::Result<()> {
        if signal == libc::SIGKILL {
            return self.kill(leader);
        }
        send_all(self.members()?, signal, leader);
        Ok(())
    }

    /// Kills every member so that none can fork away meanwhile.
    fn kill(&self, leader: i32) -> io::Result<()> {
        match self.version {
            CgroupVersion::V2 => match self.write("cgroup.kill", "1") {
                // Before Linux 5.14.
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.kill_members(leader),
                result => result,
            },
            CgroupVersion::V1 => {
                self.write("freezer.state", "FROZEN")?;
                let killed = self.kill_members(leader);
                // Frozen processes do not die: thaw whatever happened.
                self.write("freezer.state", "THAWED").and(killed)
            }
        }
    }

    fn kill_members(&self, leader: i32) -> io::Result<()> {
        send_all(self.members()?, libc::SIGKILL, leader);
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let file = self.open(name, OFlags::WRONLY)?;
        rustix::io::write(&file, text.as_bytes())?;
        Ok(())
    }

    fn open(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let _rights = AsRunner::enter(self.identity);
        let flags = flags | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, name, flags, Mode::empty())?)
    }
}
