//! Which engine makes the sandboxes: the one that was configured or, where that was left open,
//! namespaces of this machine if they hold all they promise, else Docker.

use std::path::PathBuf;
use std::sync::Arc;

use sandbank_engine::{Engine, EngineError, InstanceId};
use sandbank_engine_docker::DockerEngine;
use sandbank_engine_native::{NativeEngine, NativeSettings};
use sandbank_server::config::{EngineKind, Settings};

use super::engine_settings::{docker_settings, native_settings};
use super::start_failure::{DOCKER, NATIVE, no_engine};
use crate::failure::Failure;

/// Why an engine was not started.
pub(super) enum NotStarted {
    /// A setting of it cannot be used.
    Setting(Failure),
    Engine(&'static str, EngineError),
}

impl From<NotStarted> for Failure {
    fn from(error: NotStarted) -> Self {
        match error {
            NotStarted::Setting(failure) => failure,
            NotStarted::Engine(name, error) => no_engine(name, &error),
        }
    }
}

impl NotStarted {
    /// For whoever asks for its sandboxes.
    pub(super) fn reason(self) -> String {
        match self {
            Self::Setting(failure) => failure.message,
            Self::Engine(_, EngineError::Unavailable(reason)) => reason,
            Self::Engine(_, error) => error.to_string(),
        }
    }
}

/// The default one; the settings then say which it is. `images_from` is another data directory to
/// take the native engine's images from. `in_use` is the engine that sandboxes are in already: a
/// choice that was left open does not leave them behind.
pub(crate) async fn choose_engine(
    settings: &mut Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
    in_use: Option<&str>,
) -> Result<Arc<dyn Engine>, Failure> {
    if settings.engine == EngineKind::Auto {
        settings.engine = in_use.and_then(EngineKind::named).unwrap_or(EngineKind::Auto);
    }
    let engine = match settings.engine {
        EngineKind::Auto => either(settings, instance, images_from).await?,
        kind => start(settings, kind, instance, images_from).await?,
    };
    settings.engine = EngineKind::named(engine.name()).unwrap_or(settings.engine);
    Ok(engine)
}

/// One that is named.
pub(super) async fn start(
    settings: &Settings,
    kind: EngineKind,
    instance: InstanceId,
    images_from: Option<PathBuf>,
) -> Result<Arc<dyn Engine>, NotStarted> {
    match kind {
        EngineKind::Docker => docker(settings, instance).await,
        EngineKind::Auto | EngineKind::Native => {
            native(settings, instance, images_from).await.map(|engine| Arc::new(engine) as _)
        }
    }
}

async fn native(
    settings: &Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
) -> Result<NativeEngine, NotStarted> {
    let native = native_settings(settings, instance).map_err(NotStarted::Setting)?;
    let native = NativeSettings { images_from, ..native };
    NativeEngine::start(native).await.map_err(|error| NotStarted::Engine(NATIVE, error))
}

async fn docker(settings: &Settings, instance: InstanceId) -> Result<Arc<dyn Engine>, NotStarted> {
    let engine = DockerEngine::start(docker_settings(settings, instance)).await;
    let engine = engine.map_err(|error| NotStarted::Engine(DOCKER, error))?;
    tracing::info!(version = engine.version(), "sandboxes are containers of Docker");
    Ok(Arc::new(engine))
}

async fn either(
    settings: &Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
) -> Result<Arc<dyn Engine>, Failure> {
    let native = match native(settings, instance.clone(), images_from).await {
        Ok(native) => native,
        Err(error) => {
            let failure = Failure::from(error);
            let instead = docker(settings, instance).await;
            return match instead {
                Ok(docker) => {
                    tracing::warn!(reason = %failure, "Docker is used in place of the native engine");
                    Ok(docker)
                }
                // What was wanted first is what should be repaired.
                Err(_) => Err(failure),
            };
        }
    };
    let Some((control, reason)) = native.refuses_for() else { return Ok(Arc::new(native)) };
    // Sandboxes that it has already are not left behind.
    if native.list().await.is_ok_and(|machines| !machines.is_empty()) {
        return Ok(Arc::new(native));
    }
    let control = control.name();
    match docker(settings, instance).await {
        Ok(docker) => {
            tracing::warn!(
                control,
                reason,
                "Docker is used: the native engine cannot enforce this"
            );
            native.shutdown().await;
            Ok(docker)
        }
        Err(error) => {
            let failure = Failure::from(error);
            tracing::debug!(%failure, control, reason, "the native engine stays, for want of Docker");
            Ok(Arc::new(native))
        }
    }
}
