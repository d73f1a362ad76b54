//! What the networks of all instances on one host must agree on: subnets and forwarding.

use std::io;
use std::sync::Arc;

use super::subnet::Subnet;
use crate::host::Host;
use crate::kernel::lock::Lock;

const SUBNET: &str = "subnet-";
const FORWARDING: &str = "forwarding-";

pub(super) struct Shared(Arc<Host>);

impl Shared {
    pub(super) fn new(host: Arc<Host>) -> Self {
        Self(host)
    }

    pub(super) fn host(&self) -> &Arc<Host> {
        &self.0
    }

    /// None when another daemon has it. Machines of a daemon that is dead keep theirs by its route.
    pub(super) fn lock_subnet(&self, subnet: Subnet) -> io::Result<Option<Lock>> {
        self.0.lock(&subnet_name(subnet))
    }

    pub(super) fn give_up(&self, subnet: Subnet, lock: Lock) {
        self.0.remove(&subnet_name(subnet));
        drop(lock);
    }

    /// Whether a daemon has a subnet. In doubt one has.
    pub(super) fn is_used(&self) -> bool {
        self.0.names(SUBNET).any(|rest| self.0.is_locked(&format!("{SUBNET}{rest}")))
    }

    /// Removes the locks that dead daemons left.
    pub(super) fn forget_free_subnets(&self) {
        for name in self.0.names(SUBNET).map(|rest| format!("{SUBNET}{rest}")) {
            if let Ok(Some(_free)) = self.0.lock(&name) {
                self.0.remove(&name);
            }
        }
    }

    /// Links whose forwarding an instance turned on.
    pub(super) fn forwarded(&self) -> Vec<String> {
        let mut links: Vec<_> = self.0.names(FORWARDING).collect();
        links.sort();
        links
    }

    /// To be called before it is turned on.
    pub(super) fn note_forwarded(&self, link: &str) -> io::Result<()> {
        self.0.note(&format!("{FORWARDING}{link}"))
    }

    pub(super) fn forget_forwarded(&self, link: &str) {
        self.0.remove(&format!("{FORWARDING}{link}"));
    }
}

fn subnet_name(subnet: Subnet) -> String {
    format!("{SUBNET}{}-{}", subnet.address(), subnet.prefix())
}

#[cfg(test)]
mod tests {
    use sandbank_engine::InstanceId;

    use super::*;

    #[test]
    fn locks_of_dead_daemons_go_and_those_of_living_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let shared = || Shared(Arc::new(Host::enter(dir.path(), &InstanceId::random()).unwrap()));
        let (one, two) = (shared(), shared());
        let free: Subnet = "10.99.0.0/24".parse().unwrap();
        let held = one.lock_subnet(Subnet::default()).unwrap();
        assert!(held.is_some());
        drop(one.lock_subnet(free).unwrap());
        let is_there = |subnet| dir.path().join(subnet_name(subnet)).exists();
        // A child that another test is starting may hold a lock for a moment more.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while is_there(free) {
            assert!(std::time::Instant::now() < deadline, "the lock is left");
            two.forget_free_subnets();
        }
        assert!(is_there(Subnet::default()));
        assert!(two.lock_subnet(Subnet::default()).unwrap().is_none());
        assert!(two.is_used());
        one.give_up(Subnet::default(), held.unwrap());
        assert!(!two.is_used() && !is_there(Subnet::default()));
    }
}
