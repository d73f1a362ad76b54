//! The engines beside the default one. What becomes of one is nothing to the rest: one that is not
//! started soon is waited for, one that is not known to hold its sandboxes makes none, and the
//! daemon serves all the same.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use sandbank_engine::{Awaited, Engine, InstanceId};
use sandbank_orchestrator::containment::SelfTest;
use sandbank_orchestrator::{Orchestrator, OrchestratorError};
use sandbank_server::config::{EngineKind, Settings};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::choose::{NotStarted, start};
use super::self_test;
use crate::failure::Failure;
use crate::limits::{FIRST_ENGINE_RETRY, LAST_ENGINE_RETRY, OTHER_ENGINE_PATIENCE};

pub(super) struct Other {
    engine: Arc<dyn Engine>,
    /// Of one that is waited for.
    place: Option<Place>,
}

struct Place {
    kind: EngineKind,
    awaited: Arc<Awaited>,
    /// A start that takes its time. It goes on: what it has made is not left half done.
    starting: Option<Starting>,
}

type Started = Result<Arc<dyn Engine>, NotStarted>;
type Starting = JoinHandle<Started>;

/// What a start of an engine needs, now or later.
#[derive(Clone)]
pub(super) struct Ingredients {
    pub(super) settings: Settings,
    pub(super) instance: InstanceId,
    pub(super) images_from: Option<PathBuf>,
}

impl Ingredients {
    fn start(&self, kind: EngineKind) -> Starting {
        let Self { settings, instance, images_from } = self.clone();
        tokio::spawn(async move { start(&settings, kind, instance, images_from).await })
    }
}

/// Those of the settings, all at once.
pub(super) async fn start_all(ingredients: &Ingredients) -> Vec<Other> {
    let other = async |kind: &EngineKind| {
        let name = kind.name()?;
        let mut starting = ingredients.start(*kind);
        let started = tokio::time::timeout(OTHER_ENGINE_PATIENCE, &mut starting).await;
        Some(match started.map(outcome) {
            Ok(Ok(engine)) => Other { engine, place: None },
            Ok(Err(reason)) => Other::awaited(name, *kind, reason, None),
            Err(_) => {
                let reason = "the engine is still being started".to_owned();
                Other::awaited(name, *kind, reason, Some(starting))
            }
        })
    };
    let kinds = &ingredients.settings.other_engines;
    join_all(kinds.iter().map(other)).await.into_iter().flatten().collect()
}

fn outcome(joined: Result<Started, JoinError>) -> Result<Arc<dyn Engine>, String> {
    match joined {
        Ok(started) => started.map_err(NotStarted::reason),
        Err(error) => Err(format!("its start broke: {error}")),
    }
}

impl Other {
    fn awaited(
        name: &'static str,
        kind: EngineKind,
        reason: String,
        starting: Option<Starting>,
    ) -> Self {
        tracing::error!(engine = name, reason, "an engine is not there; it is waited for");
        let awaited = Arc::new(Awaited::new(name, reason));
        let engine = awaited.clone();
        Self { engine, place: Some(Place { kind, awaited, starting }) }
    }

    pub(super) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Has it make nothing until it is there and its canaries were attacked, and sees to both until
    /// the daemon leaves.
    pub(super) fn look_after(
        self,
        test: Option<SelfTest>,
        orchestrator: &Orchestrator,
        ingredients: &Ingredients,
        leaving: &CancellationToken,
    ) -> Option<JoinHandle<()>> {
        let name = self.engine.name();
        let reason = match test {
            Some(_) => "the test of this engine has not ended yet",
            None => self_test::NOT_MEANT,
        };
        orchestrator.withhold_creates(name, OrchestratorError::Untested(reason.to_owned()));
        if test.is_none() && self.place.is_none() {
            return None;
        }
        let ingredients = ingredients.clone();
        let (orchestrator, leaving) = (orchestrator.clone(), leaving.clone());
        Some(tokio::spawn(async move {
            if let Some(place) = self.place {
                let arriving = place.arrive(&ingredients);
                if leaving.run_until_cancelled(arriving).await.is_none() {
                    return;
                }
            }
            let Some(test) = test else { return };
            let data_dir = &ingredients.settings.data_dir;
            if let Err(failure) =
                self_test::catch_up_with(test, &orchestrator, name, data_dir).await
            {
                tracing::error!(%failure, engine = name, "this engine makes no sandboxes");
            }
        }))
    }
}

impl Place {
    /// Tries to start it again and again.
    async fn arrive(self, ingredients: &Ingredients) {
        let Self { kind, awaited, mut starting } = self;
        let mut wait = FIRST_ENGINE_RETRY;
        loop {
            let under_way = match starting.take() {
                Some(starting) => starting,
                None => {
                    tokio::time::sleep(wait).await;
                    wait = (2 * wait).min(LAST_ENGINE_RETRY);
                    ingredients.start(kind)
                }
            };
            match outcome(under_way.await) {
                Ok(engine) => {
                    tracing::info!(
                        engine = awaited.name(),
                        "an engine that was not there has come"
                    );
                    return awaited.arrives(engine);
                }
                Err(reason) => awaited.is_missing_for(reason),
            }
        }
    }
}

/// For a start that fails after all.
pub(super) async fn shut_down(
    engine: &Arc<dyn Engine>,
    others: &[Other],
    failure: Failure,
) -> Failure {
    join_all(others.iter().map(|other| other.engine.shutdown())).await;
    engine.shutdown().await;
    failure
}
