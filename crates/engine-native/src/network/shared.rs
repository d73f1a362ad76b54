//! What the instances on one host must agree on: subnets, forwarding, and who is alive.
//!
//! It lives in a directory that a reboot empties. Locks are held by open files, so a daemon that
//! dies in any way gives them back; what it leaves on the host is then cleared away by the next.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::subnet::Subnet;
use crate::kernel::lock::{Lock, try_lock};

const INSTANCE: &str = "instance-";
const FORWARDING: &str = "forwarding-";

#[derive(Debug, Clone)]
pub(super) struct Shared {
    dir: PathBuf,
}

impl Shared {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// None when another process has it.
    fn lock(&self, name: &str) -> io::Result<Option<Lock>> {
        try_lock(&self.dir.join(name))
    }

    pub(super) fn lock_subnet(&self, subnet: Subnet) -> io::Result<Option<Lock>> {
        self.lock(&format!("subnet-{}-{}", subnet.address(), subnet.prefix()))
    }

    pub(super) fn lock_instance(&self, id: &str) -> io::Result<Option<Lock>> {
        self.lock(&format!("{INSTANCE}{id}"))
    }

    /// Its lock must be held by the caller, who then has no more use for it.
    pub(super) fn forget_instance(&self, id: &str) {
        let _ = std::fs::remove_file(self.dir.join(format!("{INSTANCE}{id}")));
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.strip_prefix(prefix).map(str::to_owned)).collect()
    }

    /// Whether a daemon other than `own` runs.
    pub(super) fn has_others(&self, own: &str) -> bool {
        let others = self.names(INSTANCE).into_iter().filter(|id| id != own);
        others.into_iter().any(|id| matches!(self.lock_instance(&id), Ok(None)))
    }

    /// Links whose forwarding an instance turned on.
    pub(super) fn forwarded(&self) -> Vec<String> {
        let mut links = self.names(FORWARDING);
        links.sort();
        links
    }

    /// To be called before it is turned on.
    pub(super) fn note_forwarded(&self, link: &str) -> io::Result<()> {
        File::create(self.dir.join(format!("{FORWARDING}{link}"))).map(drop)
    }

    pub(super) fn forget_forwarded(&self, link: &str) {
        let _ = std::fs::remove_file(self.dir.join(format!("{FORWARDING}{link}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_again_with_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (Shared::open(dir.path()).unwrap(), Shared::open(dir.path()).unwrap());
        let held = one.lock_subnet(Subnet::default()).unwrap();
        assert!(held.is_some());
        assert!(two.lock_subnet(Subnet::default()).unwrap().is_none());
        assert!(two.lock_subnet("10.99.0.0/24".parse().unwrap()).unwrap().is_some());
        drop(held);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while two.lock_subnet(Subnet::default()).unwrap().is_none() {
            assert!(std::time::Instant::now() < deadline, "the lock is not given back");
            std::thread::yield_now();
        }
    }

    #[test]
    fn only_living_instances_count() {
        let dir = tempfile::tempdir().unwrap();
        let shared = Shared::open(dir.path()).unwrap();
        let _own = shared.lock_instance("own").unwrap().unwrap();
        drop(shared.lock_instance("dead").unwrap());
        // A child that another test is starting may hold it for a moment more.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while shared.has_others("own") {
            assert!(std::time::Instant::now() < deadline, "a dead instance counts as alive");
            std::thread::yield_now();
        }
        let _living = shared.lock_instance("living").unwrap().unwrap();
        assert!(shared.has_others("own"));
    }
}
