//! Ready namespaces, refilled in the background, and the task that watches the host.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rtnetlink::Handle;
use sandbank_engine::{Control, EngineError};
use tokio::sync::Notify;

use super::egress::{Egress, Outside};
use super::limits::{LINK_GRACE, LINK_POLL, UPKEEP_INTERVAL};
use super::link::Wiring;
use super::namespace::Namespace;
use super::{Network, link, namespace, resolver};
use crate::limits::REFILL_PAUSE;

/// A namespace that can reach what `outside` says.
struct Wired {
    network: Network,
    outside: Outside,
}

#[derive(Default)]
struct Ready {
    empty: VecDeque<Network>,
    wired: VecDeque<Wired>,
    /// Slots whose machines are dead, and when their links must be gone.
    leaving: VecDeque<(Instant, u32)>,
}

pub(super) struct Pool {
    pub(super) egress: Egress,
    netlink: Handle,
    size: usize,
    ready: Mutex<Ready>,
    next_slot: AtomicU32,
    /// Wakes the task that refills.
    wanting: Arc<Notify>,
    closed: AtomicBool,
    /// Held while refilling, so that nothing is added behind a close.
    filling: tokio::sync::Mutex<()>,
    /// Held while links of dead machines are cut, so that none is cut after it was given anew.
    cutting: tokio::sync::Mutex<()>,
}

impl Pool {
    /// Fails when this process may not make namespaces at all.
    pub(super) async fn open(egress: Egress, size: usize) -> io::Result<Arc<Self>> {
        let (connection, netlink, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        let first = make_empty().await?;
        let ready = Ready { empty: VecDeque::from([first]), ..Ready::default() };
        let pool = Arc::new(Self {
            egress,
            netlink,
            size,
            ready: Mutex::new(ready),
            next_slot: AtomicU32::new(0),
            wanting: Arc::new(Notify::new()),
            closed: AtomicBool::new(false),
            filling: tokio::sync::Mutex::new(()),
            cutting: tokio::sync::Mutex::new(()),
        });
        pool.egress.refresh(&pool.netlink).await;
        tokio::spawn(tend(Arc::downgrade(&pool), pool.wanting.clone()));
        pool.wanting.notify_one();
        Ok(pool)
    }

    #[cfg(test)]
    pub(super) fn netlink(&self) -> Handle {
        self.netlink.clone()
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn take_empty(&self) -> Result<Network, EngineError> {
        let ready = self.ready().empty.pop_front();
        self.wanting.notify_one();
        match ready {
            Some(network) => Ok(network),
            None => make_empty().await.map_err(EngineError::io("make a network namespace")),
        }
    }

    pub(super) async fn take_wired(&self) -> Result<Network, EngineError> {
        let outside = self.egress.outside().map_err(|reason| EngineError::ControlUnavailable {
            control: Control::NetworkEgress,
            reason,
        })?;
        let ready = self.pop_wired(&outside);
        self.wanting.notify_one();
        match ready {
            Some(network) => Ok(network),
            None => Ok(self.make_wired(outside).await?.network),
        }
    }

    /// One that was made for the host as it is now; others lead to old resolvers.
    fn pop_wired(&self, outside: &Outside) -> Option<Network> {
        let mut ready = self.ready();
        ready.wired.retain(|wired| wired.outside == *outside);
        ready.wired.pop_front().map(|wired| wired.network)
    }

    /// Makes a namespace on the next slot whose link does not exist.
    async fn make_wired(&self, outside: Outside) -> Result<Wired, EngineError> {
        let namespace =
            namespace::create().await.map_err(EngineError::io("make a network namespace"))?;
        let slots = outside.subnet.slots();
        for _ in 0..slots {
            let slot = self.next_slot.fetch_add(1, Ordering::Relaxed) % slots;
            if !self.is_leaving(slot) && self.wire(&namespace, &outside, slot).await? {
                return Ok(wired(namespace, outside, slot));
            }
        }
        // The rest are in use or were until a moment ago; of those, the oldest is freed now.
        let _cutting = self.cutting.lock().await;
        while let Some(slot) = self.first_leaving(Instant::now() + LINK_GRACE) {
            self.cut(slot).await;
            self.forget_leaving(slot);
            if self.wire(&namespace, &outside, slot).await? {
                return Ok(wired(namespace, outside, slot));
            }
        }
        Err(EngineError::Exhausted(format!("all {slots} network slots are taken")))
    }

    /// False when the slot is taken.
    async fn wire(
        &self,
        namespace: &Namespace,
        outside: &Outside,
        slot: u32,
    ) -> Result<bool, EngineError> {
        let wiring = Wiring {
            name: &self.egress.link_name(slot),
            gateway: outside.subnet.gateway(slot),
            guest: outside.subnet.guest(slot),
            mtu: outside.mtu,
            resolvers: &outside.resolvers,
            host: &outside.host,
        };
        match link::wire(&self.netlink, namespace, &wiring).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(EngineError::io("wire a network namespace")(error)),
        }
    }

    /// Notes that a slot's machine is dead. The kernel removes its link with the namespace, many
    /// at a time, which is far quicker than asking it for each; a link that is still there after
    /// the grace is cut, whoever has its namespace.
    pub(super) fn leave(&self, slot: u32) {
        self.ready().leaving.push_back((Instant::now() + LINK_GRACE, slot));
    }

    fn is_leaving(&self, slot: u32) -> bool {
        self.ready().leaving.iter().any(|(_, leaving)| *leaving == slot)
    }

    fn first_leaving(&self, due_by: Instant) -> Option<u32> {
        let ready = self.ready();
        ready.leaving.front().filter(|(due, _)| *due <= due_by).map(|(_, slot)| *slot)
    }

    /// Only when its link has been cut: until then nobody may have the slot.
    fn forget_leaving(&self, slot: u32) {
        self.ready().leaving.retain(|(_, leaving)| *leaving != slot);
    }

    async fn cut_overdue(&self) {
        let _cutting = self.cutting.lock().await;
        while let Some(slot) = self.first_leaving(Instant::now()) {
            self.cut(slot).await;
            self.forget_leaving(slot);
        }
    }

    async fn cut(&self, slot: u32) {
        if let Err(error) = link::delete(&self.netlink, &self.egress.link_name(slot)).await {
            tracing::warn!(%error, slot, "failed to remove a sandbox's link");
        }
    }

    async fn refill(&self) {
        let _filling = self.filling.lock().await;
        while self.ready().empty.len() < self.size && !self.is_closed() {
            match make_empty().await {
                Ok(network) => self.ready().empty.push_back(network),
                Err(error) => return tracing::warn!(%error, "failed to refill the pool"),
            }
        }
        while self.ready().wired.len() < self.size && !self.is_closed() {
            let Ok(outside) = self.egress.outside() else { return };
            match self.make_wired(outside).await {
                Ok(wired) => self.ready().wired.push_back(wired),
                Err(error) => return tracing::warn!(%error, "failed to refill the pool"),
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wanting.notify_one();
        let _filling = self.filling.lock().await;
        let leaving: Vec<u32> = {
            let mut ready = self.ready();
            ready.empty.clear();
            let pooled: Vec<Wired> = ready.wired.drain(..).collect();
            let pooled = pooled.into_iter().filter_map(|wired| wired.network.slot);
            pooled.chain(ready.leaving.drain(..).map(|(_, slot)| slot)).collect()
        };
        self.wait_gone(&leaving).await;
        // Links that are left belong to machines, which go on without us.
        match link::named(&self.netlink, &self.egress.links).await {
            Ok(links) if links.is_empty() => self.egress.undo(&self.netlink).await,
            Ok(links) => tracing::debug!(machines = links.len(), "the network stays up"),
            Err(error) => tracing::warn!(%error, "failed to list the links"),
        }
    }

    /// Their namespaces are closed: the kernel is removing their links.
    async fn wait_gone(&self, slots: &[u32]) {
        let deadline = Instant::now() + LINK_GRACE;
        let mut left: Vec<u32> = slots.to_vec();
        while !left.is_empty() && Instant::now() < deadline {
            let Ok(links) = link::named(&self.netlink, &self.egress.links).await else { break };
            left.retain(|slot| {
                let name = self.egress.link_name(*slot);
                links.iter().any(|(_, link)| *link == name)
            });
            if !left.is_empty() {
                tokio::time::sleep(LINK_POLL).await;
            }
        }
        for slot in left {
            self.cut(slot).await;
        }
    }
}

fn wired(namespace: Namespace, outside: Outside, slot: u32) -> Wired {
    let resolv_conf = resolver::resolv_conf(&outside.resolvers);
    Wired { network: Network { netns: namespace.fd, slot: Some(slot), resolv_conf }, outside }
}

async fn make_empty() -> io::Result<Network> {
    let netns = namespace::create_empty().await?;
    let resolv_conf = resolver::NO_NETWORK.to_owned();
    Ok(Network { netns, slot: None, resolv_conf })
}

/// Refills when something was taken and looks at the host now and then. Ends with its pool.
async fn tend(pool: Weak<Pool>, wanting: Arc<Notify>) {
    let mut next_upkeep = Instant::now() + UPKEEP_INTERVAL;
    loop {
        // An end of the wait is no error: there is something to look at.
        let _ = tokio::time::timeout(LINK_GRACE, wanting.notified()).await;
        // Let the machine that took something start in peace.
        tokio::time::sleep(REFILL_PAUSE).await;
        let Some(pool) = pool.upgrade() else { return };
        if pool.is_closed() {
            return;
        }
        if next_upkeep <= Instant::now() {
            next_upkeep = Instant::now() + UPKEEP_INTERVAL;
            pool.egress.refresh(&pool.netlink).await;
        }
        pool.refill().await;
        pool.cut_overdue().await;
    }
}
