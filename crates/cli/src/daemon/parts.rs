//! A whole daemon: engine, store, orchestrator and server, started in order and stopped in reverse.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use sandbank_orchestrator::containment::{SelfTest, forget_all_but};
use sandbank_orchestrator::{Engines, Orchestrator};
use sandbank_server::config::{Secret, Settings};
use sandbank_server::{App, Shutdown};
use sandbank_store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine_settings::lifecycle_settings;
use super::others::{self, Ingredients, Other};
use super::{DataDir, choose_engine, left_behind, self_test, start_failure, workspace_place};
use crate::failure::{Exit, Failure};

const DATABASE: &str = "sandbank.db";

/// A copy of the instance id for people and scripts; the database has the original.
const INSTANCE: &str = "instance";

pub(crate) struct Daemon {
    data_dir: DataDir,
    address: SocketAddr,
    store: Store,
    orchestrator: Orchestrator,
    shutdown: Shutdown,
    server: JoinHandle<std::io::Result<()>>,
    /// The self-test, if the start was without a result. Ends as the orchestrator leaves.
    testing: Option<JoinHandle<Result<(), Failure>>>,
    /// What is still being done about the other engines, until `leaving`.
    others: Vec<JoinHandle<()>>,
    leaving: CancellationToken,
}

impl Daemon {
    /// The port is taken first: whoever finds it taken learns so before anything is made.
    /// `images_from` is another data directory to take images from. Without a `test` it makes no
    /// sandboxes. Cancelling `leaving` cuts the test short; dropping the future would leave what
    /// was attacked.
    pub(crate) async fn start(
        mut settings: Settings,
        data_dir: DataDir,
        images_from: Option<PathBuf>,
        test: Option<SelfTest>,
        token: &Secret,
        leaving: &CancellationToken,
    ) -> Result<Self, Failure> {
        raise_open_files();
        let bind = settings.server.bind;
        let listening = |error: std::io::Error| start_failure::no_listener(bind, &error);
        let listener = TcpListener::bind(bind).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let elsewhere = workspace_place::open(&settings, data_dir.path()).await?;
        let store = open_store(&data_dir).await?;
        let instance = store.instance_id().clone();
        let open =
            store.sandboxes().open().await.map_err(|error| start_failure::no_store(&error))?;
        let in_use = open.first().map(|row| row.engine.as_str());
        let engine =
            choose_engine(&mut settings, instance.clone(), images_from.clone(), in_use).await?;
        let ingredients = Ingredients { settings: settings.clone(), instance, images_from };
        let place = data_dir.path();
        let (others, untested) = tokio::join!(
            others::start_all(&ingredients),
            self_test::pass(test, &*engine, place, leaving)
        );
        let untested = match untested {
            Ok(untested) => untested,
            Err(failure) => return Err(others::shut_down(&engine, &others, failure).await),
        };
        sandbank_fault_points::arm();
        let lifecycle = lifecycle_settings(&settings, &*engine, &others).await;
        let engines: Vec<_> = others.iter().map(|other| other.engine().clone()).collect();
        let names: Vec<_> = engines.iter().chain([&engine]).map(|engine| engine.name()).collect();
        forget_all_but(&names, place);
        let engines = Engines::new(engine.clone(), engines);
        let orchestrator = match Orchestrator::start(lifecycle, engines, store.clone()).await {
            Ok(orchestrator) => orchestrator,
            Err(error) => {
                let failure = start_failure::no_orchestrator(engine.name(), &error);
                return Err(others::shut_down(&engine, &others, failure).await);
            }
        };
        left_behind::stop(data_dir.path(), &orchestrator).await;
        let leaving = CancellationToken::new();
        let look_after =
            |other: Other| other.look_after(test, &orchestrator, &ingredients, &leaving);
        let others = others.into_iter().filter_map(look_after).collect();
        let app = App::new(orchestrator.clone(), store.clone(), settings, token);
        let app = match elsewhere {
            Some(place) => app.with_workspace(place),
            None => app,
        };
        let shutdown = app.shutdown().clone();
        let testing = untested.and_then(|why| {
            orchestrator.withhold_creates(engine.name(), why);
            let (orchestrator, shutdown) = (orchestrator.clone(), shutdown.clone());
            let place = data_dir.path().to_owned();
            Some(tokio::spawn(self_test::catch_up(test?, orchestrator, place, shutdown)))
        });
        orchestrator.fill_pool();
        let server = tokio::spawn(sandbank_server::serve(listener, app));
        Ok(Self {
            data_dir,
            address,
            store,
            orchestrator,
            shutdown,
            server,
            testing,
            others,
            leaving,
        })
    }

    /// Whether a daemon ever ran over this directory, as far as this user can see.
    pub(crate) fn was_in(data_dir: &Path) -> bool {
        data_dir.join(DATABASE).is_file()
    }

    #[cfg(test)]
    pub(super) fn pretend_in(data_dir: &Path) {
        std::fs::write(data_dir.join(DATABASE), "").expect("a file in a directory of the test's");
    }

    /// Whether the port could be taken now.
    pub(crate) async fn check_listener(bind: SocketAddr) -> Result<(), Failure> {
        let bound = TcpListener::bind(bind).await;
        bound.map(drop).map_err(|error| start_failure::no_listener(bind, &error))
    }

    /// How this machine reaches it.
    pub(crate) fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}")
    }

    pub(crate) fn orchestrator(&self) -> &Orchestrator {
        &self.orchestrator
    }

    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    pub(crate) fn data_dir_path(&self) -> &Path {
        self.data_dir.path()
    }

    pub(crate) fn data_dir(&mut self) -> &mut DataDir {
        &mut self.data_dir
    }

    /// Serves until [`Daemon::shutdown`] is told to, then gives everything back. Sandboxes go on.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let served = self.server.await;
        self.leaving.cancel();
        self.orchestrator.shutdown().await;
        join_all(self.others).await;
        let tested = match self.testing {
            Some(testing) => testing.await.unwrap_or(Ok(())),
            None => Ok(()),
        };
        join_all(self.orchestrator.engines().map(|engine| engine.shutdown())).await;
        self.store.close().await;
        let broke =
            |reason: String| Failure::new(Exit::Internal, format!("serving broke: {reason}"));
        match served {
            Ok(Ok(())) => tested,
            Ok(Err(error)) => Err(broke(error.to_string())),
            Err(error) => Err(broke(error.to_string())),
        }
    }
}

async fn open_store(data_dir: &DataDir) -> Result<Store, Failure> {
    let store = Store::open(&data_dir.path().join(DATABASE)).await;
    let store = store.map_err(|error| start_failure::no_store(&error))?;
    let copy = data_dir.path().join(INSTANCE);
    std::fs::write(&copy, format!("{}\n", store.instance_id()))
        .map_err(Failure::io(format_args!("write {}", copy.display())))?;
    Ok(store)
}

/// Every sandbox costs the daemon a few descriptors, and the usual soft limit is for programs
/// that `select`.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
