//! The network on a host that the test makes: a namespace with an uplink to a "public internet",
//! a private LAN with the host's resolver, and a metadata service. The machine's own network is
//! never touched, and everything goes with the namespaces.

mod hosts;
mod matrix;
mod upkeep;

use std::path::PathBuf;
use std::sync::Arc;

use sandbank_engine::{InstanceId, NetworkMode, SandboxId};
use tempfile::TempDir;

use self::hosts::FakeHost;
use super::{Network, NetworkSettings, Networks, Subnet};
use crate::host::Host;

/// One daemon's settings and state.
struct Instance {
    id: InstanceId,
    dir: TempDir,
}

impl Instance {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("resolv.conf"), "nameserver 127.0.0.53\n").unwrap();
        std::fs::write(dir.path().join("real.conf"), "nameserver 10.20.0.53\n").unwrap();
        Self { id: InstanceId::random(), dir }
    }

    fn resolver_files(&self) -> Vec<PathBuf> {
        ["resolv.conf", "real.conf"].map(|name| self.dir.path().join(name)).to_vec()
    }

    async fn open_on(&self, host: &FakeHost, subnet: Subnet, pool_size: usize) -> Networks {
        let entered = Host::enter(&host.run.path().join("sandbank"), &self.id).unwrap();
        let settings = NetworkSettings {
            subnet,
            pool_size,
            host: Arc::new(entered),
            state_dir: self.dir.path().to_owned(),
        };
        Networks::open_with(settings, self.resolver_files()).await.unwrap()
    }

    async fn open(&self, host: &FakeHost) -> Networks {
        self.open_on(host, Subnet::default(), 1).await
    }

    fn links(&self) -> String {
        format!("sbk{}", &self.id.as_str()[1..])
    }

    fn table(&self) -> String {
        format!("sandbank_{}", self.id)
    }
}

/// As a daemon ends.
async fn shut(networks: Networks) {
    networks.close().await;
}

async fn take(networks: &Networks, mode: NetworkMode) -> (SandboxId, Network) {
    let id = SandboxId::random();
    let network = networks.take(mode, &id).await.unwrap();
    (id, network)
}

/// Runs a test on a host of its own. Skips, and says so, where none can be made.
fn on_fake_host(test: impl AsyncFnOnce(&FakeHost) + Send + 'static) {
    if !super::tool::is_installed("nft") {
        return println!("skipped: nft is not installed");
    }
    let thread = std::thread::spawn(move || {
        // SAFETY: this thread alone gets new namespaces; descriptors stay shared.
        let unshared = unsafe {
            use rustix::thread::UnshareFlags as Flags;
            rustix::thread::unshare_unsafe(Flags::NEWNET | Flags::NEWNS | Flags::FS)
        };
        if let Err(error) = unshared {
            return println!("skipped: no namespaces can be made: {error}");
        }
        let follow = rustix::mount::MountPropagationFlags::DOWNSTREAM
            | rustix::mount::MountPropagationFlags::REC;
        rustix::mount::mount_change("/", follow).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let host = FakeHost::new().await;
            test(&host).await;
        });
        runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
