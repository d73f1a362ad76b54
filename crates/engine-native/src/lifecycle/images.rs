//! Images, off the async threads.

use std::path::Path;
use std::sync::Arc;

use sandbank_engine::{EngineError, Freed, ImageInfo, ImageName, ImportProgress};
use tokio::sync::mpsc;

use super::{Parts, blocking};

pub(super) async fn list(parts: &Arc<Parts>) -> Result<Vec<ImageInfo>, EngineError> {
    let parts = Arc::clone(parts);
    blocking(move || Ok(parts.images.list())).await
}

pub(super) async fn import(
    parts: &Arc<Parts>,
    name: &ImageName,
    archive: &Path,
    progress: &(dyn Fn(ImportProgress) + Send + Sync),
) -> Result<ImageInfo, EngineError> {
    let (parts, name, archive) = (Arc::clone(parts), name.clone(), archive.to_owned());
    let (sender, mut steps) = mpsc::unbounded_channel();
    let importing = blocking(move || {
        let imported = parts.images.import(&name, &archive, &|step| {
            // Whoever watched may have left; the import goes on.
            let _ = sender.send(step);
        });
        parts.image_trees.forget(&name);
        imported
    });
    let reporting = async {
        while let Some(step) = steps.recv().await {
            progress(step);
        }
    };
    tokio::join!(importing, reporting).0
}

pub(super) async fn remove(parts: &Arc<Parts>, name: &ImageName) -> Result<Freed, EngineError> {
    let (parts, name) = (Arc::clone(parts), name.clone());
    blocking(move || {
        parts.image_trees.forget(&name);
        parts.images.remove(&name, &|name| is_in_use(&parts, name))
    })
    .await
}

pub(super) async fn prune(parts: &Arc<Parts>) -> Result<Freed, EngineError> {
    let parts = Arc::clone(parts);
    blocking(move || parts.images.prune(&|name| is_in_use(&parts, name))).await
}

fn is_in_use(parts: &Parts, name: &ImageName) -> bool {
    let uses = |record: crate::machine::Record| record.spec.image == *name;
    parts.table.all().into_iter().any(|(_, entry)| entry.record().is_some_and(uses))
}
