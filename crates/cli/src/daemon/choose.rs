//! Which engine makes the sandboxes: the one that was configured or, where that was left open,
//! namespaces of this machine if they hold all they promise, else Docker.

use std::path::PathBuf;
use std::sync::Arc;

use sandbank_engine::{Engine, InstanceId};
use sandbank_engine_docker::DockerEngine;
use sandbank_engine_native::{NativeEngine, NativeSettings};
use sandbank_server::config::{EngineKind, Settings};

use super::engine_settings::{docker_settings, native_settings};
use super::start_failure::{DOCKER, NATIVE, no_engine};
use crate::failure::Failure;

/// Settings that depend on the engine are made to fit the one that is chosen. `images_from` is
/// another data directory to take the native engine's images from. `in_use` is the engine that
/// sandboxes are in already: a choice that was left open does not leave them behind.
pub(crate) async fn choose_engine(
    settings: &mut Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
    in_use: Option<&str>,
) -> Result<Arc<dyn Engine>, Failure> {
    let wanted = match (settings.engine, in_use) {
        (EngineKind::Auto, Some(NATIVE)) => EngineKind::Native,
        (EngineKind::Auto, Some(DOCKER)) => EngineKind::Docker,
        (kind, _) => kind,
    };
    match wanted {
        EngineKind::Docker => docker(settings, instance).await,
        EngineKind::Native => {
            native(settings, instance, images_from).await.map(|engine| Arc::new(engine) as _)
        }
        EngineKind::Auto => either(settings, instance, images_from).await,
    }
}

async fn native(
    settings: &Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
) -> Result<NativeEngine, Failure> {
    let native = NativeSettings { images_from, ..native_settings(settings, instance)? };
    NativeEngine::start(native).await.map_err(|error| no_engine(NATIVE, &error))
}

async fn docker(settings: &mut Settings, instance: InstanceId) -> Result<Arc<dyn Engine>, Failure> {
    // There is no image of this machine in Docker.
    if settings.sandboxes.default_image.is_host()
        && let Some(image) = settings.docker.default_image.clone()
    {
        settings.sandboxes.default_image = image;
    }
    let engine = DockerEngine::start(docker_settings(settings, instance)).await;
    let engine = engine.map_err(|error| no_engine(DOCKER, &error))?;
    tracing::info!(version = engine.version(), "sandboxes are containers of Docker");
    Ok(Arc::new(engine))
}

async fn either(
    settings: &mut Settings,
    instance: InstanceId,
    images_from: Option<PathBuf>,
) -> Result<Arc<dyn Engine>, Failure> {
    let native = match native(settings, instance.clone(), images_from).await {
        Ok(native) => native,
        Err(failure) => {
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
        Err(failure) => {
            tracing::debug!(%failure, control, reason, "the native engine stays, for want of Docker");
            Ok(Arc::new(native))
        }
    }
}
