//! Pulls an image: found, downloaded in parallel, then unpacked like an archive.
//!
//! Nothing is locked while a registry is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use sandbank_engine::{BeforeSwap, EngineError, ImageInfo, ImageName, ImportProgress, PullRequest};
use sandbank_registry::{
    CONCURRENT_DOWNLOADS, Credentials, Image, Platform, Reference, Registry, RegistryError,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Parts, blocking};
use crate::image::Pulled;

type Tell<'a> = &'a (dyn Fn(ImportProgress) + Send + Sync);

pub(super) async fn pull(
    parts: &Arc<Parts>,
    name: &ImageName,
    request: &PullRequest,
    tell: Tell<'_>,
    cancelled: &CancellationToken,
    before_swap: &BeforeSwap,
) -> Result<ImageInfo, EngineError> {
    parts.images.check_name(name)?;
    let fetching = cancelled.run_until_cancelled(fetch(parts, request, tell));
    let pulled = fetching.await.unwrap_or_else(|| Err(was_cancelled()))?;
    let (steps, mut told) = mpsc::unbounded_channel();
    let unpacking = {
        let (parts, name, cancelled) = (Arc::clone(parts), name.clone(), cancelled.clone());
        let before_swap = Arc::clone(before_swap);
        blocking(move || {
            let report = |step| _ = steps.send(step);
            let imported =
                parts.images.import_pulled(&name, &pulled, &report, &cancelled, &*before_swap);
            parts.image_trees.forget(&name);
            imported
        })
    };
    let reporting = async {
        while let Some(step) = told.recv().await {
            tell(step);
        }
    };
    let unpacked = tokio::join!(unpacking, reporting).0;
    unpacked.map_err(|error| if cancelled.is_cancelled() { was_cancelled() } else { error })
}

async fn fetch(
    parts: &Arc<Parts>,
    request: &PullRequest,
    tell: Tell<'_>,
) -> Result<Pulled, EngineError> {
    let reference: Reference = request.reference.parse().map_err(|error| {
        let hint = "write it as `docker pull` takes it".to_owned();
        EngineError::NotPulled { message: format!("{error}"), hint, retryable: false }
    })?;
    let credentials = request.credentials.as_ref().map(|known| Credentials {
        username: known.username.clone(),
        password: known.password.clone(),
    });
    let registry = Registry::new(parts.settings.registries.clone());
    let found = registry.find(&reference, credentials, &Platform::of_this_machine()).await;
    let image = Arc::new(found.map_err(not_pulled)?);
    let pulled = {
        let (parts, image) = (Arc::clone(parts), Arc::clone(&image));
        blocking(move || parts.images.make_room(&image)).await?
    };
    download(&image, &pulled, tell).await.map_err(not_pulled)?;
    Ok(pulled)
}

/// Half of the whole progress.
async fn download(image: &Image, pulled: &Pulled, tell: Tell<'_>) -> Result<(), RegistryError> {
    let bytes_total = 2 * pulled.bytes();
    tell(ImportProgress { bytes_done: 0, bytes_total });
    let done: Vec<AtomicU64> = pulled.missing.iter().map(|_| AtomicU64::new(0)).collect();
    let mut downloads: Vec<BoxFuture<'_, Result<(), RegistryError>>> = Vec::new();
    for ((layer, room), mine) in pulled.missing.iter().zip(&done) {
        let done = &done;
        downloads.push(Box::pin(async move {
            let told = |bytes| {
                mine.store(bytes, Ordering::Relaxed);
                let bytes_done = done.iter().map(|each| each.load(Ordering::Relaxed)).sum();
                tell(ImportProgress { bytes_done, bytes_total });
            };
            image.download(layer, room.clone(), &told).await
        }));
    }
    stream::iter(downloads).buffer_unordered(CONCURRENT_DOWNLOADS).try_collect::<()>().await
}

fn not_pulled(error: RegistryError) -> EngineError {
    match error {
        RegistryError::Write(source) => EngineError::io("write a layer")(source),
        error => EngineError::NotPulled {
            message: error.to_string(),
            hint: error.hint(),
            retryable: error.is_passing(),
        },
    }
}

fn was_cancelled() -> EngineError {
    EngineError::NotPulled {
        message: "it was cancelled".to_owned(),
        hint: "nothing of it was kept; pull it again".to_owned(),
        retryable: true,
    }
}
