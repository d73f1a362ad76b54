//! The engines beside the default one. What becomes of one is nothing to the rest: one that cannot
//! be started is waited for, one that is not known to hold its sandboxes makes none, and the daemon
//! serves all the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use sandbank_engine::{Awaited, Engine, InstanceId};
use sandbank_orchestrator::Orchestrator;
use sandbank_orchestrator::containment::SelfTest;
use sandbank_server::config::{EngineKind, Settings};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::choose::{NotStarted, start};
use super::self_test;
use crate::failure::Failure;
use crate::limits::{FIRST_ENGINE_RETRY, LAST_ENGINE_RETRY};

pub(super) struct Other {
    engine: Arc<dyn Engine>,
    /// Of one that is waited for.
    place: Option<(EngineKind, Arc<Awaited>)>,
    /// Why it makes no sandboxes yet, or never will.
    withheld: Option<Withheld>,
}

enum Withheld {
    Untested(String),
    Escaped(String),
}

/// What a later attempt to start an engine needs.
struct Ingredients {
    settings: Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
}

/// Those of the settings, all at once.
pub(super) async fn start_all(
    settings: &Settings,
    instance: &InstanceId,
    images_from: Option<&PathBuf>,
) -> Vec<Other> {
    let other = async |kind: &EngineKind| {
        let name = kind.name()?;
        let started = start(settings, *kind, instance.clone(), images_from.cloned()).await;
        Some(match started {
            Ok(engine) => Other { engine, place: None, withheld: None },
            Err(error) => Other::awaited(name, *kind, error),
        })
    };
    join_all(settings.other_engines.iter().map(other)).await.into_iter().flatten().collect()
}

impl Other {
    fn awaited(name: &'static str, kind: EngineKind, error: NotStarted) -> Self {
        let reason = error.reason();
        tracing::error!(engine = name, reason, "an engine is not there; it is tried again");
        let place = Arc::new(Awaited::new(name, reason));
        let untested = Withheld::Untested("the engine has only just come".to_owned());
        Self { engine: place.clone(), place: Some((kind, place)), withheld: Some(untested) }
    }

    pub(super) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Attacks its canaries, if it is there.
    pub(super) async fn test(
        &mut self,
        test: Option<SelfTest>,
        data_dir: &Path,
        leaving: &CancellationToken,
    ) {
        if self.place.is_some() {
            return;
        }
        self.withheld = match self_test::pass(test, &*self.engine, data_dir, leaving).await {
            Ok(untested) => untested.map(Withheld::Untested),
            Err(failure) => {
                let engine = self.engine.name();
                tracing::error!(%failure, engine, "this engine makes no sandboxes");
                Some(Withheld::Escaped(failure.message))
            }
        };
    }

    /// Goes on with what is missing, until there is nothing or the daemon leaves.
    pub(super) fn look_after(
        self,
        test: Option<SelfTest>,
        orchestrator: &Orchestrator,
        ingredients: (&Settings, &InstanceId, Option<&PathBuf>),
        leaving: &CancellationToken,
    ) -> Option<JoinHandle<()>> {
        let name = self.engine.name();
        match self.withheld? {
            Withheld::Escaped(reason) => {
                orchestrator.withhold_creates(name, reason);
                return None;
            }
            Withheld::Untested(reason) => orchestrator.withhold_creates(name, reason),
        }
        let (settings, instance, images_from) = ingredients;
        let ingredients = Ingredients {
            settings: settings.clone(),
            instance: instance.clone(),
            images_from: images_from.cloned(),
        };
        let (orchestrator, leaving) = (orchestrator.clone(), leaving.clone());
        Some(tokio::spawn(async move {
            if let Some((kind, place)) = self.place {
                let arriving = arrive(kind, &place, &ingredients);
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

/// Tries to start it again and again.
async fn arrive(kind: EngineKind, place: &Awaited, ingredients: &Ingredients) {
    let Ingredients { settings, instance, images_from } = ingredients;
    let mut wait = FIRST_ENGINE_RETRY;
    loop {
        tokio::time::sleep(wait).await;
        wait = (2 * wait).min(LAST_ENGINE_RETRY);
        match start(settings, kind, instance.clone(), images_from.clone()).await {
            Ok(engine) => {
                tracing::info!(engine = place.name(), "an engine that was not there has come");
                return place.arrives(engine);
            }
            Err(error) => place.is_missing_for(error.reason()),
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
