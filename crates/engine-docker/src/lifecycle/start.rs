//! Starting, finding the machines of an earlier daemon, and leaving them to the next.

use std::sync::Arc;

use sandbank_engine::EngineError;
use tokio_util::sync::CancellationToken;

use super::{Parts, events, list};
use crate::connection::{Address, Client, Surroundings, find};
use crate::controls::{self, Host};
use crate::image::Images;
use crate::limits::MAX_OPEN_FILES;
use crate::network::Network;
use crate::places::{self, Places};
use crate::runner_volume::RunnerVolume;
use crate::settings::DockerSettings;

pub(super) async fn start(settings: DockerSettings) -> Result<Arc<Parts>, EngineError> {
    let found = find(settings.host.as_deref(), &Surroundings::of_this_process())?;
    tracing::debug!(address = %found.address, source = found.source, "the Docker Engine was chosen");
    let client = Client::connect(found).await?;
    let host = Host::examine(&client, &settings).await?;
    // On this host nobody may have more than we, as far as is known.
    let own = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let is_here = matches!(client.found.address, Address::Unix(_));
    let open_files = own.filter(|_| is_here).map_or(MAX_OPEN_FILES, |own| own.min(MAX_OPEN_FILES));
    let network = Network::new(settings.network.clone(), &settings.instance);
    let parts = Arc::new(Parts {
        settings,
        client,
        host,
        table: super::table::Table::default(),
        images: Images::default(),
        runner: RunnerVolume::default(),
        network,
        places: Places::default(),
        kept: tokio::sync::Mutex::new(()),
        seccomp_hex: sandbank_seccomp::program_hex(),
        open_files: open_files.into(),
        lacks_v6: false.into(),
        lacking: Default::default(),
        imported: Default::default(),
        report: controls::Cache::default(),
        silent: Default::default(),
        leaving: CancellationToken::new(),
    });
    // Before anybody asks for one of them.
    for container in list::containers(&parts).await? {
        let entry = parts.table.get_or_insert(&container.id, container.spec);
        entry.set_container(container.name);
    }
    places::remove_leftovers(&parts.client, &parts.settings.instance).await?;
    RunnerVolume::take_back(&parts.client, &parts.settings.instance).await;
    events::follow(&parts);
    Ok(parts)
}

/// Machines keep running.
pub(super) async fn shutdown(parts: &Arc<Parts>) {
    parts.leaving.cancel();
    parts.network.remove_if_unused(&parts.client).await;
}
