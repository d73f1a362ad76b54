//! What an image says about itself, remembered: an image under one digest never changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bollard::models::ImageInspect;
use bollard::query_parameters::ListImagesOptions;
use futures_util::{StreamExt, TryStreamExt};
use sandbank_engine::{EngineError, ImageInfo, ImageName};

use super::name_of;
use crate::connection::{Client, status_of};
use crate::limits::{IMAGE_FRESH_FOR, REMEMBERED_IMAGES};

#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// `sha256:…`
    pub(crate) id: String,
    /// As configurations name it; none where this one does not.
    machine: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Volumes that it declares.
    pub(crate) volumes: Vec<String>,
    pub(crate) layers: u32,
    pub(crate) size_bytes: u64,
}

impl Facts {
    /// Docker itself only warns, and its programs would not run, or under an emulation that a
    /// machine does not let them have.
    fn fits(&self, name: &ImageName, machine: &str) -> Result<(), EngineError> {
        match self.machine.as_deref() {
            Some(other) if other != machine => Err(EngineError::BadImage(format!(
                "{name} is for linux/{other}, and Docker's host is linux/{machine}: get it for \
                 that with `docker pull --platform linux/{machine} {name}`"
            ))),
            _ => Ok(()),
        }
    }
}

#[derive(Default)]
pub(crate) struct Images {
    by_id: Mutex<HashMap<String, Arc<Facts>>>,
    by_name: Mutex<HashMap<ImageName, (Instant, Arc<Facts>)>>,
}

/// Inspections at the same time.
const AT_ONCE: usize = 8;

impl Images {
    pub(crate) async fn resolve(
        &self,
        client: &Client,
        name: &ImageName,
    ) -> Result<Arc<Facts>, EngineError> {
        // The native engine's, whatever the engine may have under that name.
        if name.is_host() {
            return Err(EngineError::ImageNotFound(name.clone()));
        }
        let known = lock(&self.by_name).get(name).cloned();
        if let Some((_, facts)) = known.filter(|(seen, _)| seen.elapsed() < IMAGE_FRESH_FOR) {
            return Ok(facts);
        }
        let found = inspect(client, name.as_str()).await?;
        let facts = Arc::new(found.ok_or_else(|| EngineError::ImageNotFound(name.clone()))?);
        facts.fits(name, &client.machine)?;
        remember(&self.by_name, name.clone(), (Instant::now(), Arc::clone(&facts)));
        Ok(facts)
    }

    /// It was replaced or removed.
    pub(crate) fn forget(&self, name: &ImageName) {
        lock(&self.by_name).remove(name);
    }

    pub(crate) async fn list(&self, client: &Client) -> Result<Vec<ImageInfo>, EngineError> {
        let listed = client.api().list_images(None::<ListImagesOptions>).await;
        let listed = listed.map_err(client.failed("list the images"))?;
        let named = listed.into_iter().flat_map(|image| {
            let names: Vec<_> = image.repo_tags.iter().filter_map(|tag| name_of(tag)).collect();
            names.into_iter().map(move |name| (name, image.id.clone(), image.created))
        });
        let described = futures_util::stream::iter(named)
            .map(|(name, id, created)| async move {
                let facts = self.of_id(client, &id).await?;
                Ok::<_, EngineError>(facts.map(|facts| ImageInfo {
                    name,
                    digest: Some(facts.id.clone()),
                    size_bytes: facts.size_bytes,
                    layers: facts.layers,
                    imported_at_ms: u64::try_from(created).ok().map(|seconds| seconds * 1000),
                }))
            })
            .buffered(AT_ONCE);
        let mut images: Vec<ImageInfo> =
            described.try_filter_map(async |image| Ok(image)).try_collect().await?;
        images.sort_by(|a, b| a.name.cmp(&b.name));
        images.dedup_by(|a, b| a.name == b.name);
        Ok(images)
    }

    /// None when it was removed since.
    async fn of_id(&self, client: &Client, id: &str) -> Result<Option<Arc<Facts>>, EngineError> {
        if let Some(facts) = lock(&self.by_id).get(id).cloned() {
            return Ok(Some(facts));
        }
        let facts = inspect(client, id).await?.map(Arc::new);
        if let Some(facts) = &facts {
            remember(&self.by_id, id.to_owned(), Arc::clone(facts));
        }
        Ok(facts)
    }
}

async fn inspect(client: &Client, reference: &str) -> Result<Option<Facts>, EngineError> {
    match client.api().inspect_image(reference).await {
        Ok(image) => facts(image).map(Some),
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => Ok(None),
        Err(error) => Err(client.failed("look at an image")(error)),
    }
}

fn facts(image: ImageInspect) -> Result<Facts, EngineError> {
    let nameless = || EngineError::Internal("Docker shows an image without an id".to_owned());
    let config = image.config.unwrap_or_default();
    let variable = |text: String| {
        let (name, value) = text.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    let layers = image.root_fs.and_then(|root| root.layers).map_or(0, |layers| layers.len());
    Ok(Facts {
        id: image.id.ok_or_else(nameless)?,
        machine: image.architecture.filter(|machine| !machine.is_empty()),
        env: config.env.unwrap_or_default().into_iter().filter_map(variable).collect(),
        volumes: config.volumes.unwrap_or_default(),
        layers: u32::try_from(layers).unwrap_or(u32::MAX),
        size_bytes: image.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
    })
}

fn remember<K: std::hash::Hash + Eq, V>(known: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut known = lock(known);
    if known.len() >= REMEMBERED_IMAGES {
        known.clear();
    }
    known.insert(key, value);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
