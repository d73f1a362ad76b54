//! One cgroup per command, so that nothing a command started can hide from its timeout.
//!
//! Directories `c0`, `c1`, … below the one the engine gave are made when needed and reused once
//! empty: removed cgroups linger in the kernel. They divide processes, not resources.

mod group;
mod oom;
mod own;

pub(crate) use group::Group;
pub(crate) use oom::{OomKills, OomMark};
pub(crate) use own::oom_file;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};
use sandbank_protocol::CgroupVersion;

use crate::privileges::{AsRunner, FileIdentity};

/// How many groups with leftover processes are looked at before a new one is made.
const LINGERING_CHECKS: usize = 2;

pub(crate) struct CommandCgroups {
    directory: OwnedFd,
    version: CgroupVersion,
    identity: FileIdentity,
    /// Number of the next directory to make.
    next: Cell<u32>,
    free: RefCell<Vec<Rc<Group>>>,
    /// Their commands ended, but something these left behind still runs.
    lingering: RefCell<VecDeque<Rc<Group>>>,
}

/// A group as one command has it. Worthless once the group went to another command.
#[derive(Clone)]
pub(crate) struct Lease {
    group: Rc<Group>,
    turn: u64,
}

impl Lease {
    pub(crate) fn group(&self) -> Option<&Group> {
        (self.group.turn() == self.turn).then_some(&*self.group)
    }
}

impl CommandCgroups {
    pub(crate) fn new(directory: OwnedFd, version: CgroupVersion, identity: FileIdentity) -> Self {
        Self {
            directory,
            version,
            identity,
            next: Cell::new(0),
            free: RefCell::default(),
            lingering: RefCell::default(),
        }
    }

    /// An empty group for a new command.
    pub(crate) fn take(&self) -> io::Result<Lease> {
        let group = match self.free.borrow_mut().pop() {
            Some(group) => group,
            None => match self.take_lingering() {
                Some(group) => group,
                None => Rc::new(self.make()?),
            },
        };
        let turn = group.next_turn();
        Ok(Lease { group, turn })
    }

    /// To be called when a command has ended.
    pub(crate) fn give_back(&self, lease: &Lease) {
        let Some(group) = lease.group() else { return };
        if group.is_empty() {
            group.next_turn();
            self.free.borrow_mut().push(lease.group.clone());
        } else {
            self.lingering.borrow_mut().push_back(lease.group.clone());
        }
    }

    fn take_lingering(&self) -> Option<Rc<Group>> {
        let mut lingering = self.lingering.borrow_mut();
        for _ in 0..LINGERING_CHECKS.min(lingering.len()) {
            let group = lingering.pop_front()?;
            if group.is_empty() {
                return Some(group);
            }
            lingering.push_back(group);
        }
        None
    }

    fn make(&self) -> io::Result<Group> {
        let _rights = AsRunner::enter(self.identity);
        loop {
            let name = format!("c{}", self.next.replace(self.next.get() + 1));
            match rustix::fs::mkdirat(&self.directory, &name, Mode::from_raw_mode(0o755)) {
                // Left by an earlier owner of the engine's directory; taken over when unused.
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let opened = rustix::fs::openat(&self.directory, &name, flags, Mode::empty())?;
            let group = Group::new(opened, self.version, self.identity);
            if group.is_empty() {
                return Ok(group);
            }
        }
    }
}
