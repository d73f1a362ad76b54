//! Everything on the host that egress needs: the subnet, forwarding, rules, and their upkeep.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rtnetlink::Handle;
use sandbank_engine::InstanceId;
use serde::{Deserialize, Serialize};

use super::forward_policy::Passage;
use super::limits::{HOST_ADDRESSES, MTU};
use super::rules::{self, Rules};
use super::subnet::{CANDIDATES, Subnet};
use super::{forwarding, link, ranges, resolver, tool};

/// What must be known after a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    subnet: Option<String>,
    /// Links whose forwarding we turned on.
    forwarded: Vec<String>,
}

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
    remembered: Remembered,
    /// The rules in force.
    rules: Option<Rules>,
    outside: Result<Outside, String>,
}

pub(super) struct Egress {
    /// Beginning of the names of our links: no other instance's links begin so.
    pub(super) links: String,
    table: String,
    wanted: Subnet,
    state_file: PathBuf,
    resolver_files: Vec<PathBuf>,
    /// Reports and reads are quick; changes are made by one task at a time.
    current: Mutex<Current>,
    changing: tokio::sync::Mutex<()>,
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

impl Egress {
    pub(super) fn new(
        wanted: Subnet,
        instance: &InstanceId,
        state_dir: &std::path::Path,
        resolver_files: Vec<PathBuf>,
    ) -> Self {
        // An id is `i` and eight characters; with four digits of a slot that is the longest name
        // a link can have.
        let tag = instance.as_str().strip_prefix('i').unwrap_or(instance.as_str());
        let state_file = state_dir.join("network.json");
        let remembered = std::fs::read(&state_file)
            .ok()
            .and_then(|content| serde_json::from_slice(&content).ok())
            .unwrap_or_default();
        let outside = Err("the network is still being prepared".to_owned());
        Self {
            links: format!("sbk{tag}"),
            table: format!("sandbank_{}", instance.as_str()),
            wanted,
            state_file,
            resolver_files,
            current: Mutex::new(Current { remembered, rules: None, outside }),
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
        let guarded = self.plan_forwarding(&names)?;
        let rules = Rules {
            table: self.table.clone(),
            links: self.links.clone(),
            subnet,
            resolvers: resolvers.clone(),
            guarded: guarded.clone(),
        };
        self.enforce(rules).await?;
        // Only now: the rules that keep it to sandboxes are in force.
        for link in &guarded {
            forwarding::set(link, true).map_err(|error| {
                format!("{link} does not forward: {error}; {}", forwarding::FIX)
            })?;
        }
        let host = link::addresses(netlink).await.map_err(io("read the host's addresses"))?;
        // The others are blocked already, and come and go with sandboxes and bridges.
        let public = host.into_iter().filter(|address| !ranges::is_blocked(*address));
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
        self.current().rules = Some(loaded);
        result
    }

    /// The subnet of this instance: the one it has, or the first that clashes with nothing.
    async fn hold_subnet(&self, netlink: &Handle) -> Result<Subnet, String> {
        let step = "read the host's routes";
        let routes = link::routes(netlink).await.map_err(io(step))?;
        let remembered: Option<Subnet> =
            self.current().remembered.subnet.as_ref().and_then(|text| text.parse().ok());
        let held = |subnet: Subnet| {
            let same = |route: &&link::Route| {
                (route.destination, route.prefix) == (subnet.address(), subnet.prefix())
            };
            routes.iter().filter(same).any(|route| route.claim)
        };
        if let Some(subnet) = remembered
            && held(subnet)
        {
            return Ok(subnet);
        }
        let candidates: Vec<Subnet> = match self.wanted == Subnet::default() {
            true => remembered.into_iter().chain(CANDIDATES).collect(),
            false => vec![self.wanted],
        };
        for subnet in candidates {
            let clash = |route: &link::Route| {
                !route.is_default() && subnet.overlaps(route.destination, route.prefix)
            };
            if routes.iter().any(clash) {
                continue;
            }
            match link::claim(netlink, subnet.address(), subnet.prefix()).await {
                Ok(()) => {
                    self.remember(|remembered| remembered.subnet = Some(subnet.to_string()))?;
                    return Ok(subnet);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io("take a network for the sandboxes")(error)),
            }
        }
        Err(match self.wanted == Subnet::default() {
            true => "every private network we know is used by the host's routes; configure a \
                     free one as the sandboxes' subnet"
                .to_owned(),
            false => format!(
                "the configured subnet {} clashes with a route of the host; configure another",
                self.wanted
            ),
        })
    }

    /// Which links we make forward. Remembered before they do, so that it can be undone.
    fn plan_forwarding(&self, uplinks: &[String]) -> Result<Vec<String>, String> {
        let before = self.current().remembered.forwarded.clone();
        let mut forwarded = before.clone();
        if forwarding::is_global() {
            forwarded.clear();
        } else {
            let missing = uplinks.iter().filter(|link| !forwarding::is_on(link));
            let missing: Vec<String> =
                missing.filter(|link| !before.contains(link)).cloned().collect();
            forwarded.extend(missing);
        }
        if forwarded != before {
            self.remember(|remembered| remembered.forwarded.clone_from(&forwarded))?;
        }
        // One that is gone, like an unplugged adapter, has nothing to turn on.
        forwarded.retain(|link| uplinks.contains(link));
        Ok(forwarded)
    }

    fn remember(&self, change: impl FnOnce(&mut Remembered)) -> Result<(), String> {
        let mut current = self.current();
        change(&mut current.remembered);
        let content =
            serde_json::to_vec_pretty(&current.remembered).expect("the state is plain data");
        let unfinished = self.state_file.with_extension("json.new");
        std::fs::write(&unfinished, content)
            .and_then(|()| std::fs::rename(&unfinished, &self.state_file))
            .map_err(io("remember the network"))
    }

    /// Leaves the host as it was found.
    pub(super) async fn undo(&self, netlink: &Handle) {
        let _changing = self.changing.lock().await;
        let remembered = std::mem::take(&mut self.current().remembered);
        if !forwarding::is_global() {
            for link in &remembered.forwarded {
                if let Err(error) = forwarding::set(link, false) {
                    tracing::debug!(%error, link, "forwarding stays on");
                }
            }
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
        if let Some(subnet) = remembered.subnet.and_then(|text| text.parse::<Subnet>().ok())
            && let Err(error) = link::unclaim(netlink, subnet.address(), subnet.prefix()).await
        {
            tracing::warn!(%error, "failed to give the subnet back");
        }
        let _ = std::fs::remove_file(&self.state_file);
        let mut current = self.current();
        current.rules = None;
        current.outside = Err("the network has been closed".to_owned());
    }
}
