//! What the daemons of one host agree on: who runs, and whose each range of user ids is.
//!
//! It lives in a directory of root's that a reboot empties, as a reboot ends all machines. A daemon
//! that runs holds a lock, which it gives back however it ends. What it left is then cleared away
//! by the next one that starts, whichever that is.

mod uid_ranges;

pub(crate) use uid_ranges::KeptRanges;

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sandbank_engine::{EngineError, InstanceId};

use crate::kernel::lock::{Lock, is_locked, try_lock};
use crate::limits::{HOST_LOCK_PATIENCE, KERNEL_POLL};

pub(crate) const DIRECTORY: &str = "/run/sandbank";

const DAEMON: &str = "daemon-";

#[derive(Debug)]
pub(crate) struct Host {
    dir: PathBuf,
    instance: String,
    _alive: Lock,
}

impl Host {
    /// Says that this instance's daemon runs, for as long as this lives.
    pub(crate) fn enter(dir: &Path, instance: &InstanceId) -> Result<Self, EngineError> {
        let io = |error: io::Error| {
            let text = "which all daemons of this host share, cannot be written";
            EngineError::Unavailable(format!("{}, {text}: {error}", dir.display()))
        };
        let entered = || -> io::Result<Option<Lock>> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            let path = dir.join(lock_name(instance.as_str()));
            let deadline = Instant::now() + HOST_LOCK_PATIENCE;
            loop {
                match try_lock(&path)? {
                    None if Instant::now() < deadline => std::thread::sleep(KERNEL_POLL),
                    lock => return Ok(lock),
                }
            }
        };
        let alive = entered().map_err(io)?.ok_or_else(|| {
            let text = "another daemon runs with a copy of this data directory; use a new one";
            EngineError::Taken(text.to_owned())
        })?;
        Ok(Self { dir: dir.to_owned(), instance: instance.as_str().to_owned(), _alive: alive })
    }

    /// The daemon leaves nothing behind but machines.
    pub(crate) fn leave(&self) {
        self.remove(&lock_name(&self.instance));
    }

    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// While this is held, nobody else changes what is a dead daemon's. None if it is not dead.
    pub(crate) fn hold_dead(&self, instance: &str) -> Option<Dead<'_>> {
        let name = lock_name(instance);
        let known = self.dir.join(&name).exists();
        let lock = self.lock(&name).ok()??;
        Some(Dead { host: self, name, known, _lock: lock })
    }

    /// None when another process has it.
    pub(crate) fn lock(&self, name: &str) -> io::Result<Option<Lock>> {
        try_lock(&self.dir.join(name))
    }

    /// Whether someone has it. In doubt someone has.
    pub(crate) fn is_locked(&self, name: &str) -> bool {
        is_locked(&self.dir.join(name))
    }

    /// Notes something that later daemons must know.
    pub(crate) fn note(&self, name: &str) -> io::Result<()> {
        fs::File::create(self.dir.join(name)).map(drop)
    }

    /// A lock may be removed by whoever has it.
    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.dir.join(name));
    }

    /// What follows `prefix` in the names of all that is there.
    pub(crate) fn names(&self, prefix: &'static str) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(move |name| Some(name.strip_prefix(prefix)?.to_owned()))
    }
}

fn lock_name(instance: &str) -> String {
    format!("{DAEMON}{instance}")
}

/// A daemon that was killed, or that ended and left machines.
pub(crate) struct Dead<'a> {
    host: &'a Host,
    name: String,
    /// Whether the host remembers that it ran.
    known: bool,
    _lock: Lock,
}

impl Dead<'_> {
    /// There is no more to clear away of it.
    fn forget(mut self) {
        self.known = false;
    }
}

impl Drop for Dead<'_> {
    fn drop(&mut self) {
        if !self.known {
            self.host.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn enter(dir: &Path) -> Host {
        Host::enter(dir, &InstanceId::random()).unwrap()
    }

    /// As if its daemon had been killed. A child that another test is starting may have the lock
    /// for a moment more.
    pub(super) fn kill(host: Host) -> String {
        let (dir, instance) = (host.dir.clone(), host.instance.clone());
        drop(host);
        let deadline = Instant::now() + std::time::Duration::from_secs(10);
        while try_lock(&dir.join(lock_name(&instance))).unwrap().is_none() {
            assert!(Instant::now() < deadline, "the lock is not given back");
            std::thread::yield_now();
        }
        instance
    }

    #[test]
    fn only_the_dead_can_be_held() {
        let dir = tempfile::tempdir().unwrap();
        let (own, dead, living) = (enter(dir.path()), enter(dir.path()), enter(dir.path()));
        let dead = kill(dead);
        assert!(own.hold_dead(living.instance()).is_none());
        drop(own.hold_dead(&dead).unwrap());
        assert!(dir.path().join(lock_name(&dead)).exists(), "it is still remembered");
        own.hold_dead(&dead).unwrap().forget();
        assert!(!dir.path().join(lock_name(&dead)).exists());
    }

    #[test]
    fn a_lock_is_free_again_with_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (enter(dir.path()), enter(dir.path()));
        let held = one.lock("a").unwrap();
        assert!(held.is_some());
        assert!(two.lock("a").unwrap().is_none());
        assert!(two.is_locked("a") && !two.is_locked("b"));
        assert!(!dir.path().join("b").exists(), "looking makes nothing");
        assert!(two.lock("b").unwrap().is_some());
        drop(held);
        // A child that another test is starting may hold it for a moment more.
        let deadline = Instant::now() + std::time::Duration::from_secs(10);
        while two.lock("a").unwrap().is_none() {
            assert!(Instant::now() < deadline, "the lock is not given back");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_copied_data_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let instance = InstanceId::random();
        let _first = Host::enter(dir.path(), &instance).unwrap();
        let second = Host::enter(dir.path(), &instance);
        assert!(matches!(second, Err(EngineError::Taken(_))), "{second:?}");
    }
}
