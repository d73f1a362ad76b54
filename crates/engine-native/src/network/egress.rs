//! Everything on the host that egress needs: the subnet, forwarding, rules, and their upkeep.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rtnetlink::Handle;
use sandbank_protocol::egress::is_blocked;

use super::forward_policy::Passage;
use super::limits::{HOST_ADDRESSES, LINK_POLL, LOCK_PATIENCE, MTU};
use super::rules::{self, Rules};
use super::shared::Shared;
use super::subnet::{CANDIDATES, Subnet};
use super::{forwarding, link, resolver, tool};
use crate::host::Host;
use crate::kernel::lock::Lock;

/// What sandboxes made now are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outside {
    pub(super) subnet: Subnet,
    pub(super) resolvers: Vec<Ipv4Addr>,
    pub(super) host: Vec<Ipv4Addr>,
    pub(super) mtu: u32,
}

#[derive(Debug)]
struct Current {
    /// The instance's subnet, with the lock that makes it so.
    held: Option<(Subnet, Lock)>,
    /// Whether what dead daemons left is cleared away.
    cleared: bool,
    /// The rules in force.
    rules: Option<Rules>,
    outside: Result<Outside, String>,
}

pub(super) struct Egress {
    shared: Shared,
    /// Beginning of the names of our links: no other instance's links begin so.
    pub(super) links: String,
    table: String,
    wanted: Subnet,
    /// Remembers the subnet: machines that outlive the daemon have addresses of it.
    subnet_file: PathBuf,
    resolver_files: Vec<PathBuf>,
    /// Reports and reads are quick; changes are made by one task at a time.
    current: Mutex<Current>,
    changing: tokio::sync::Mutex<()>,
}

/// Beginning of the names of all instances' links.
const LINKS: &str = "sbk";

fn links_of(instance: &str) -> String {
    // An id is `i` and eight characters; with four digits of a slot that is the longest name a
    // link can have.
    format!("{LINKS}{}", instance.strip_prefix('i').unwrap_or(instance))
}

fn io(step: &str) -> impl FnOnce(std::io::Error) -> String + '_ {
    move |error| format!("failed to {step}: {error}")
}

/// Off the async threads, because tools and files block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}

/// A lock that has just been given back may still be held for a moment, by a child between its
/// fork and its exec.
async fn patiently(
    lock: impl Fn() -> std::io::Result<Option<Lock>>,
) -> std::io::Result<Option<Lock>> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        let result = lock();
        if !matches!(result, Ok(None)) || Instant::now() >= deadline {
            return result;
        }
        tokio::time::sleep(LINK_POLL).await;
    }
}

impl Egress {
    pub(super) fn new(
        wanted: Subnet,
        host: Arc<Host>,
        state_dir: &std::path::Path,
        resolver_files: Vec<PathBuf>,
    ) -> Self {
        let outside = Err("the network is still being prepared".to_owned());
        let current = Current { held: None, cleared: false, rules: None, outside };
        Self {
            links: links_of(host.instance()),
            table: rules::table_of(host.instance()),
            shared: Shared::new(host),
            wanted,
            subnet_file: state_dir.join("subnet"),
            resolver_files,
            current: Mutex::new(current),
            changing: tokio::sync::Mutex::new(()),
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is outside, or why nothing can be reached and what helps.
    pub(super) fn outside(&self) -> Result<Outside, String> {
        self.current().outside.clone()
    }

    pub(super) fn link_name(&self, slot: u32) -> String {
        format!("{}{slot}", self.links)
    }

    /// Makes the host fit, or fit again. Without a change of the host this changes nothing.
    pub(super) async fn refresh(&self, netlink: &Handle) {
        let _changing = self.changing.lock().await;
        let outside = self.prepare(netlink).await;
        let mut current = self.current();
        match (&current.outside, &outside) {
            (Ok(_), Err(reason)) => tracing::warn!(reason, "sandboxes have lost the network"),
            (Err(_), Ok(_)) => tracing::info!("sandboxes have a network"),
            _ => {}
        }
        current.outside = outside;
    }

    async fn prepare(&self, netlink: &Handle) -> Result<Outside, String> {
        if !tool::is_installed("nft") {
            return Err("nft is not installed; install the package nftables".to_owned());
        }
        let subnet = self.hold_subnet(netlink).await?;
        let files = self.resolver_files.clone();
        let resolvers = blocking(move || Ok(resolver::find(&files))).await?;
        let uplinks =
            link::uplinks(netlink, &resolvers).await.map_err(io("read the host's routes"))?;
        let names: Vec<String> = uplinks.iter().map(|(name, _)| name.clone()).collect();
        let guarded = plan_forwarding(&self.shared, &names)?;
        let rules = Rules {
            table: self.table.clone(),
            links: self.links.clone(),
            subnet,
            resolvers: resolvers.clone(),
            guarded: guarded.clone(),
        };
        self.enforce(rules).await?;
        // Only now: the rules that keep forwarding to sandboxes are in force, and may be the only
        // ones that do.
        self.clear_dead(netlink).await?;
        for link in &guarded {
            forwarding::set(link, true).map_err(|error| {
                format!("{link} does not forward: {error}; {}", forwarding::FIX)
            })?;
        }
        let host = link::addresses(netlink).await.map_err(io("read the host's addresses"))?;
        // The others are blocked already, and come and go with sandboxes and bridges.
        let public = host.into_iter().filter(|address| !is_blocked(*address));
        let host = public.take(HOST_ADDRESSES).collect();
        let mtu = uplinks.iter().map(|(_, mtu)| *mtu).min().unwrap_or(MTU).min(MTU);
        Ok(Outside { subnet, resolvers, host, mtu })
    }

    /// Loads the rules if they are not the ones in force, or if someone has flushed them.
    async fn enforce(&self, rules: Rules) -> Result<(), String> {
        let known = self.current().rules.as_ref() == Some(&rules);
        let (links, table) = (self.links.clone(), self.table.clone());
        let loaded = rules.clone();
        let result = blocking(move || {
            if !known || !rules::is_loaded(&rules.table) {
                rules.load()?;
            }
            Passage { links: &links, table: &table }.open()
        })
        .await;
        self.current().rules = result.is_ok().then_some(loaded);
        result
    }

    /// Once: clears away what dead daemons left.
    async fn clear_dead(&self, netlink: &Handle) -> Result<(), String> {
        if self.current().cleared {
            return Ok(());
        }
        let links = link::named(netlink, LINKS).await.map_err(io("list the host's links"))?;
        self.shared.forget_free_subnets();
        let host = Arc::clone(self.shared.host());
        blocking(move || {
            for instance in rules::instances().into_iter().filter(|id| *id != host.instance()) {
                let used = links.iter().any(|(_, name)| name.starts_with(&links_of(&instance)));
                if !used && let Some(_dead) = host.hold_dead(&instance) {
                    let table = rules::table_of(&instance);
                    Passage { links: &links_of(&instance), table: &table }.close();
                    rules::unload(&table);
                }
            }
            Ok(())
        })
        .await?;
        self.current().cleared = true;
        Ok(())
    }

    /// The subnet of this instance: the one it has, or the first that clashes with nothing.
    async fn hold_subnet(&self, netlink: &Handle) -> Result<Subnet, String> {
        if let Some((subnet, _)) = &self.current().held {
            return Ok(*subnet);
        }
        let routes = link::routes(netlink).await.map_err(io("read the host's routes"))?;
        let own = link::named(netlink, &self.links).await.map_err(io("list the host's links"))?;
        let remembered: Option<Subnet> =
            std::fs::read_to_string(&self.subnet_file).ok().and_then(|text| text.parse().ok());
        let usual = match self.wanted == Subnet::default() {
            true => CANDIDATES.to_vec(),
            false => vec![self.wanted],
        };
        let candidates: Vec<Subnet> = match remembered {
            // Live machines have addresses of it.
            Some(subnet) if !own.is_empty() => vec![subnet],
            Some(subnet) if usual.contains(&subnet) => [subnet].into_iter().chain(usual).collect(),
            _ => usual,
        };
        let is_own =
            |route: &link::Route| own.iter().any(|(index, _)| route.interface == Some(*index));
        for subnet in candidates {
            let clash = |route: &&link::Route| {
                !route.is_default() && subnet.overlaps(route.destination, route.prefix)
            };
            if own.is_empty() && routes.iter().filter(clash).any(|route| !is_own(route)) {
                continue;
            }
            // One that nobody has may still be looked at by another daemon.
            let lock = patiently(|| self.shared.lock_subnet(subnet)).await;
            if let Some(lock) = lock.map_err(io("lock a subnet"))? {
                std::fs::write(&self.subnet_file, subnet.to_string())
                    .map_err(io("remember the subnet"))?;
                self.current().held = Some((subnet, lock));
                return Ok(subnet);
            }
        }
        Err(match self.wanted == Subnet::default() {
            true => "every private network we know is used by the host's routes or by other \
                     instances; configure a free one as the sandboxes' subnet"
                .to_owned(),
            false => format!(
                "the configured subnet {} clashes with a route of the host or another instance; \
                 configure another",
                self.wanted
            ),
        })
    }

    /// Leaves the host as it was found, as far as no other instance needs it otherwise. Forwarding
    /// ends before the rules that keep it to sandboxes.
    pub(super) async fn undo(&self, netlink: &Handle) {
        let _changing = self.changing.lock().await;
        let outside = Err("the network has been closed".to_owned());
        let closed = Current { held: None, cleared: false, rules: None, outside };
        let before = std::mem::replace(&mut *self.current(), closed);
        // First: of two that leave at once, at least one must find nobody.
        if let Some((subnet, lock)) = before.held {
            self.shared.give_up(subnet, lock);
        }
        // Machines of a daemon that is not running still need what they have.
        let machines = link::named(netlink, LINKS).await.map_or(true, |links| !links.is_empty());
        if !machines && !self.shared.is_used() {
            restore_forwarding(&self.shared);
        }
        let (links, table) = (self.links.clone(), self.table.clone());
        let _ = blocking(move || {
            if tool::is_installed("nft") {
                Passage { links: &links, table: &table }.close();
                rules::unload(&table);
            }
            Ok(())
        })
        .await;
        let _ = std::fs::remove_file(&self.subnet_file);
    }
}

/// Which links we make forward. Noted before they do, so that it can be undone by whichever
/// instance is the last.
fn plan_forwarding(shared: &Shared, uplinks: &[String]) -> Result<Vec<String>, String> {
    let noted = shared.forwarded();
    if forwarding::is_global() {
        noted.iter().for_each(|link| shared.forget_forwarded(link));
        return Ok(Vec::new());
    }
    let mut guarded = Vec::new();
    for link in uplinks {
        if !noted.contains(link) {
            if forwarding::is_on(link) {
                // Its administrator's decision.
                continue;
            }
            shared.note_forwarded(link).map_err(io("note a change of the host"))?;
        }
        guarded.push(link.clone());
    }
    Ok(guarded)
}

fn restore_forwarding(shared: &Shared) {
    for link in shared.forwarded() {
        if !forwarding::is_global()
            && let Err(error) = forwarding::set(&link, false)
        {
            tracing::debug!(%error, link, "forwarding stays on");
        }
        shared.forget_forwarded(&link);
    }
}
