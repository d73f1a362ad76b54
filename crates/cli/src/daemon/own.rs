//! A daemon inside this process, for one command: on a loopback port nobody knows, with a token
//! nobody else has.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use sandbank_orchestrator::containment::SelfTest;
use sandbank_server::config::{EngineKind, Settings, StorageKind, WorkspaceMode};
use tokio_util::sync::CancellationToken;

use super::left_behind::{self, Mark, TEMPORARY};
use super::{Daemon, DataDir};
use crate::client::{Client, Secret};
use crate::failure::{Exit, Failure};
use crate::options::fresh_name;
use crate::scratch::Scratch;
use crate::ui::Ui;

pub(crate) struct OwnDaemon {
    daemon: Daemon,
    client: Client,
    /// Of a data directory that goes with us.
    scratch: Option<Scratch>,
    /// Nobody else has the directory before it is gone; dropped last.
    held: File,
}

impl OwnDaemon {
    /// Over the usual data directory, or over a temporary one when that is taken or not ours.
    /// What must stay cannot be put into a temporary one. `engine` is the one that will be named.
    pub(crate) async fn start(
        ui: &Ui,
        mut settings: Settings,
        keep: bool,
        engine: Option<&str>,
    ) -> Result<Self, Failure> {
        // Where nothing else was said, whoever names an engine says it now.
        if settings.engine == EngineKind::Auto {
            settings.engine = engine.and_then(EngineKind::named).unwrap_or(EngineKind::Auto);
        }
        // The default one is there, and tested, before anything is asked of the daemon.
        let place = settings.other_engines.iter().position(|kind| kind.name() == engine);
        if let (Some(place), Some(_)) = (place, engine) {
            std::mem::swap(&mut settings.engine, &mut settings.other_engines[place]);
        }
        left_behind::sweep(&settings).await;
        let mut images_from = None;
        let (mut data_dir, scratch) = match DataDir::take(&settings.data_dir) {
            Ok(data_dir) => (data_dir, None),
            Err(failure) if keep => return Err(failure),
            Err(failure) => {
                tracing::debug!(%failure, "using a temporary data directory");
                // One that is only in use has images that were imported for us, too.
                let in_use = failure.exit == Exit::Temporary;
                images_from = in_use.then(|| settings.data_dir.clone());
                let (data_dir, scratch) = temporary()?;
                left_behind::sign(data_dir.path(), &settings)?;
                (data_dir, Some(scratch))
            }
        };
        data_dir.announce_private()?;
        let test = SelfTest { always: false, only_one: scratch.is_some() };
        let own = Self::over(settings, data_dir, images_from, scratch, Some(test)).await?;
        if own.scratch.is_some() {
            ui.note(
                "the data directory is in use or not writable here, so a temporary one is used",
            );
        }
        Ok(own)
    }

    /// Over the usual data directory, for requests that are answered at once: whoever wants the
    /// directory meanwhile waits for it.
    pub(crate) async fn start_briefly(settings: Settings) -> Result<Self, Failure> {
        let mut data_dir = DataDir::take(&settings.data_dir)?;
        data_dir.announce_brief()?;
        Self::over(settings, data_dir, None, None, None).await
    }

    pub(super) async fn over(
        mut settings: Settings,
        data_dir: DataDir,
        images_from: Option<PathBuf>,
        scratch: Option<Scratch>,
        test: Option<SelfTest>,
    ) -> Result<Self, Failure> {
        settings.data_dir = data_dir.path().to_owned();
        settings.server.bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // Sandboxd's clients have no business here, not even on loopback.
        settings.auth.loopback_open = false;
        // The workspace of `/api` is the server's.
        settings.workspace.mode = WorkspaceMode::Off;
        // One sandbox needs no stock of ingredients, and no machine beside its own.
        settings.network.pool_size = 0;
        settings.sandboxes.pool.clear();
        if scratch.is_some() {
            // A pool of its own would cost more than the command.
            settings.storage.kind = StorageKind::Plain;
        }
        let held = data_dir.hold()?;
        let token = Secret::new(fresh_name("own"));
        // A signal is answered when it has started, which is soon.
        let leaving = CancellationToken::new();
        let daemon = Daemon::start(settings, data_dir, images_from, test, &token, &leaving).await?;
        let client = Client::new(&daemon.url(), Some(token))?;
        Ok(Self { daemon, client, scratch, held })
    }

    /// From here on the sandbox with this key goes with this process, however that ends.
    pub(crate) fn mark(&self, key: &str) -> Result<Mark, Failure> {
        Mark::set(self.daemon.data_dir_path(), key)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn stop(self) {
        self.daemon.shutdown().force();
        if let Err(failure) = self.daemon.finish().await {
            tracing::error!(%failure, "our own daemon ended badly");
        }
        drop(self.scratch);
        drop(self.held);
    }
}

/// In the moment before it is locked, one looks as if somebody had left it; then another is made.
fn temporary() -> Result<(DataDir, Scratch), Failure> {
    let make = || {
        let scratch = Scratch::make(TEMPORARY, &[&std::env::temp_dir()])?;
        Ok((DataDir::take(scratch.path())?, scratch))
    };
    make().or_else(|_: Failure| make())
}
