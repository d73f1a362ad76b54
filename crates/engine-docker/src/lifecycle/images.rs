//! Images: new ones, old ones, and those whose machines are attacked before they are trusted.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use bollard::query_parameters::RemoveImageOptionsBuilder;
use sandbank_engine::{EngineError, ImageInfo, ImageName, ImportProgress, PullRequest};

use super::Parts;
use crate::connection::status_of;
use crate::image::{self, Facts};
use crate::limits::IMPORT_STALL;

/// One for all, and first: an engine's images are not ours, may be many, and every machine is
/// confined in the same way. Those that came by us are tested, too.
pub(super) async fn to_test(parts: &Arc<Parts>) -> Result<Vec<ImageInfo>, EngineError> {
    let mut images = parts.images.list(&parts.client).await?;
    let wanted = parts.settings.default_image.as_ref();
    images.sort_by_key(|image| Some(&image.name) != wanted);
    let one = first_usable(parts, &images).await?;
    let imported = parts.imported.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let stands_for_all = |image: &ImageInfo| Some(&image.name) == one.as_ref();
    images.retain(|image| stands_for_all(image) || imported.contains(&image.name));
    images.sort_by_key(|image| !stands_for_all(image));
    Ok(images)
}

/// Of one that no machine is made of, nothing can be told: it is passed over, and only if there is
/// no other, why it is refused is the answer.
async fn first_usable(
    parts: &Arc<Parts>,
    images: &[ImageInfo],
) -> Result<Option<ImageName>, EngineError> {
    let mut refused = None;
    for ImageInfo { name, .. } in images {
        match look_to_the_end(parts, name).await {
            Ok(()) => return Ok(Some(name.clone())),
            // Docker itself may not be able to open one.
            Err(error @ (EngineError::BadImage(_) | EngineError::Internal(_))) => {
                tracing::debug!(image = %name, %error, "an image is not tested");
                refused.get_or_insert(error);
            }
            // It went meanwhile.
            Err(EngineError::ImageNotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    refused.map_or(Ok(None), Err)
}

/// In a task of its own: a caller that stops waiting leaves no container that was looked into.
async fn look_to_the_end(parts: &Arc<Parts>, name: &ImageName) -> Result<(), EngineError> {
    let (parts, name) = (Arc::clone(parts), name.clone());
    let task = tokio::spawn(async move { look_into(&parts, &name).await.map(drop) });
    match task.await {
        Ok(looked) => looked,
        Err(error) => Err(EngineError::Internal(format!("looking into an image failed: {error}"))),
    }
}

/// What a machine of it has to know, and the volumes of it that have to be covered.
pub(super) async fn look_into(
    parts: &Parts,
    name: &ImageName,
) -> Result<(Arc<Facts>, Arc<[String]>), EngineError> {
    let (client, instance) = (&parts.client, &parts.settings.instance);
    let facts = parts.images.resolve(client, name).await?;
    let volumes = parts.places.volumes_to_cover(client, instance, name, &facts).await;
    if let Err(EngineError::ImageNotFound(name)) = &volumes {
        parts.images.forget(name);
    }
    Ok((facts, volumes?))
}

pub(super) async fn import(
    parts: &Arc<Parts>,
    name: &ImageName,
    archive: &Path,
    progress: &(dyn Fn(ImportProgress) + Send + Sync),
) -> Result<ImageInfo, EngineError> {
    if name.is_host() {
        return Err(EngineError::BadImage("the name host is the native engine's".to_owned()));
    }
    let settings = &parts.settings;
    let importing = image::Importing {
        limits: settings.import_limits,
        scratch: &settings.scratch,
        stall: IMPORT_STALL,
    };
    image::import(&parts.client, name, archive, &importing, progress).await?;
    parts.images.forget(name);
    let facts = parts.images.resolve(&parts.client, name).await?;
    parts.imported.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(ImageInfo {
        name: name.clone(),
        digest: Some(facts.id.clone()),
        size_bytes: facts.size_bytes,
        layers: facts.layers,
        imported_at_ms: now.ok().and_then(|since| u64::try_from(since.as_millis()).ok()),
    })
}

/// Docker pulls its images itself, with its own credentials, mirrors and proxies.
pub(super) fn not_pulled(name: &ImageName, request: &PullRequest) -> EngineError {
    let reference: String =
        request.reference.chars().filter(|c| !c.is_control() && *c != '`').take(200).collect();
    let naming = match reference == name.as_str() {
        true => String::new(),
        false => format!(", and name it with `docker tag {reference} {name}`"),
    };
    EngineError::NotPulled {
        message: "images are Docker's own here".to_owned(),
        hint: format!("pull it with `docker pull {reference}`{naming}"),
        retryable: false,
    }
}

pub(super) async fn remove(parts: &Arc<Parts>, name: &ImageName) -> Result<(), EngineError> {
    // The engine would let go of one name of several, whoever uses it.
    let uses = |spec: sandbank_engine::MachineSpec| spec.image == *name;
    if parts.table.all().into_iter().any(|(_, entry)| entry.spec().is_some_and(uses)) {
        return Err(EngineError::ImageInUse(name.clone()));
    }
    parts.images.forget(name);
    let options = RemoveImageOptionsBuilder::default().build();
    match parts.client.api().remove_image(name.as_str(), Some(options), None).await {
        Ok(_) => Ok(()),
        Err(error) => match status_of(&error).map(|refusal| refusal.status) {
            Some(404) => Err(EngineError::ImageNotFound(name.clone())),
            Some(409) => Err(EngineError::ImageInUse(name.clone())),
            _ => Err(parts.client.failed("remove an image")(error)),
        },
    }
}
