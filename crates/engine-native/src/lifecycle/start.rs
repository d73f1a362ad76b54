//! Starting, finding the machines of an earlier daemon, and leaving them to the next.

use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use sandbank_engine::{DeathCause, EngineError, SandboxId};

use super::table::{Entry, Table};
use super::{Parts, blocking, controls, death, stock, workspaces};
use crate::host::{self, Host};
use crate::image::ImageStore;
use crate::kernel::watched::watched;
use crate::limits::FILES_FOR_STOCK;
use crate::machine::{Directory, Record, boot_id, log};
use crate::network::{NetworkSettings, Networks};
use crate::settings::NativeSettings;
use crate::spawner::Spawner;
use crate::user_namespace::UserNamespaces;
use crate::{cgroup, storage};

pub(super) async fn start(mut settings: NativeSettings) -> Result<Arc<Parts>, EngineError> {
    afford_stock(&mut settings);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&settings.data_dir)
        .map_err(EngineError::io("make the data directory"))?;
    let rootless = !rustix::process::geteuid().is_root();
    let host = if rootless { None } else { Some(enter_host(&settings).await?) };
    match assemble(settings, host.clone()).await {
        Ok(parts) => Ok(parts),
        Err(error) => {
            host.iter().for_each(|host| host.leave());
            Err(error)
        }
    }
}

/// Whatever can fail comes before the network, which changes the host.
async fn assemble(
    settings: NativeSettings,
    host: Option<Arc<Host>>,
) -> Result<Arc<Parts>, EngineError> {
    let directory = Directory::open(&settings.data_dir)?;
    let storage = storage::open(&settings.data_dir, settings.storage, settings.pool_bytes)?;
    let storage_root = storage::Identity::of(storage.root())
        .map_err(EngineError::io("look at the workspace directory"))?;
    let kept = storage::Kept::open(&*storage)?;
    let images_from = settings.images_from.as_ref().unwrap_or(&settings.data_dir);
    let images = ImageStore::open(&images_from.join("images"))?;
    let cgroups = cgroup::open(settings.cgroups, &settings.instance, settings.cgroups_ready)?;
    let runner = sandbank_runner_binary::seal(sandbank_runner_binary::RUNNER)
        .map_err(EngineError::io("make the runner's memory file"))?;
    let boot = boot_id().map_err(EngineError::io("read the boot id"))?;
    let found = find(&directory)?;
    let spawner = Spawner::start(settings.spawner.clone()).await?;
    let occupied = found.iter().filter_map(|(_, record)| record.as_ref().map(|r| r.uid_slot));
    let user_namespaces = UserNamespaces::new(
        Arc::clone(&spawner),
        host.clone(),
        &settings.instance,
        settings.user_namespaces_ready,
        occupied,
    )?;
    let networks = match &host {
        Some(host) => Some(open_networks(&settings, host).await?),
        None => None,
    };
    let shortcomings = controls::find_shortcomings(&*cgroups);
    let parts = Arc::new(Parts {
        settings,
        rootless: host.is_none(),
        host,
        directory,
        table: Table::default(),
        storage,
        storage_root,
        kept,
        images,
        image_trees: super::image_trees::ImageTrees::default(),
        networks,
        cgroups,
        spawner,
        user_namespaces,
        boot,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        runner,
        seccomp_hex: sandbank_seccomp::program_hex(),
        stock: stock::Stock::default(),
        shortcomings,
        report: controls::Cache::default(),
    });
    for (id, record) in found {
        if let Err(error) = adopt(&parts, id, record).await {
            shutdown(&parts).await;
            return Err(error);
        }
    }
    stock::keep(&parts);
    Ok(parts)
}

/// Before anything of ours is made, and with what dead daemons left cleared away.
async fn enter_host(settings: &NativeSettings) -> Result<Arc<Host>, EngineError> {
    let instance = settings.instance.clone();
    let enter = move || {
        let host = Host::enter(std::path::Path::new(host::DIRECTORY), &instance)?;
        host.clear_dead(cgroup::sweep);
        Ok(Arc::new(host))
    };
    blocking(enter).await
}

async fn open_networks(
    settings: &NativeSettings,
    host: &Arc<Host>,
) -> Result<Networks, EngineError> {
    Networks::open(NetworkSettings {
        subnet: settings.subnet,
        pool_size: settings.networks_ready,
        host: Arc::clone(host),
        state_dir: settings.data_dir.join("network"),
    })
    .await
}

/// Ready ingredients are descriptors. A daemon that may have few keeps them for its work.
fn afford_stock(settings: &mut NativeSettings) {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if files.is_some_and(|files| files < FILES_FOR_STOCK) {
        settings.user_namespaces_ready = settings.user_namespaces_ready.min(1);
        settings.networks_ready = settings.networks_ready.min(1);
        settings.cgroups_ready = settings.cgroups_ready.min(1);
    }
}

fn find(directory: &Directory) -> Result<Vec<(SandboxId, Option<Record>)>, EngineError> {
    let ids = directory.list().map_err(EngineError::io("list the machines"))?;
    let read = |id: SandboxId| Ok((id.clone(), directory.read(&id)?));
    let found: std::io::Result<_> = ids.into_iter().map(read).collect();
    found.map_err(EngineError::io("read the record of a machine"))
}

/// A machine counts as dead only when the kernel says so: any other failure ends the start.
async fn adopt(
    parts: &Arc<Parts>,
    id: SandboxId,
    record: Option<Record>,
) -> Result<(), EngineError> {
    let key = record.as_ref().and_then(|record| record.process_since(&parts.boot));
    let network_slot = record.as_ref().and_then(|record| record.network_slot);
    if let Some(networks) = &parts.networks {
        networks.adopt(&id, network_slot).await;
    }
    let entry = Entry::new(record);
    let process = match key {
        Some(key) => key.open().map_err(EngineError::io("find a machine's process"))?,
        None => None,
    };
    let process = process
        .map(|pidfd| watched(pidfd, tokio::io::Interest::READABLE).map(Arc::new))
        .transpose()
        .map_err(EngineError::io("watch a machine's process"))?;
    match process {
        Some(process) => {
            entry.set_process(Arc::clone(&process));
            if let Ok(stats) = parts.cgroups.stats(&id) {
                entry.saw_oom_kills(stats.oom_kills);
            }
            death::watch(parts, &entry, process, None);
            keep_log(parts, &id, &entry);
        }
        None => {
            // Half-made: should it have been cloned, then nobody will ever use it.
            if record_is_open(&entry)
                && let Err(error) = parts.cgroups.kill(&id)
            {
                tracing::warn!(%id, %error, "cannot end a half-made machine");
            }
            entry.set_dead(DeathCause::Unknown);
        }
    }
    parts.table.insert(id, entry);
    Ok(())
}

fn keep_log(parts: &Parts, id: &SandboxId, entry: &Entry) {
    match log::keep(parts.directory.log(id)) {
        Ok(log) => entry.set_log(log),
        // Machines that earlier versions made have none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%id, %error, "what its runner says is not written down"),
    }
}

/// Whether the machine may have been cloned without that being written down.
fn record_is_open(entry: &Entry) -> bool {
    entry.record().is_none_or(|record| record.process.is_none())
}

/// Machines keep running. Shared tables of the host go when no machine needs them.
pub(super) async fn shutdown(parts: &Arc<Parts>) {
    parts.stock.stop();
    parts.user_namespaces.close().await;
    if let Some(networks) = &parts.networks {
        networks.close().await;
    }
    let closing = Arc::clone(parts);
    let _ = tokio::task::spawn_blocking(move || {
        closing.cgroups.close();
        closing.storage.close(workspaces::may_be_in_use(&closing));
        controls::remove_canary(&closing);
        closing.host.iter().for_each(|host| host.leave());
    })
    .await;
    parts.spawner.stop().await;
}
