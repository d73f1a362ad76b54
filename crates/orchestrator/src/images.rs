//! One engine's images. What is made of them is attacked before anybody gets one.

use std::path::Path;
use std::sync::Arc;

use sandbank_engine::{EngineError, Freed, ImageInfo, ImageName, ImportProgress, PullRequest};
use tokio_util::sync::CancellationToken;

use crate::containment::{self, ImageSource};
use crate::context::Context;
use crate::pool;
use crate::provider::Provider;

pub struct Images {
    context: Arc<Context>,
    provider: Arc<Provider>,
}

impl Images {
    pub(crate) fn new(context: &Arc<Context>, provider: &Arc<Provider>) -> Self {
        Self { context: context.clone(), provider: provider.clone() }
    }

    /// Whose they are.
    pub fn engine(&self) -> &'static str {
        self.provider.name()
    }

    pub async fn list(&self) -> Result<Vec<ImageInfo>, EngineError> {
        self.provider.engine.images().await
    }

    /// Imports an image and attacks a sandbox of it; one that does not hold is not kept. What is
    /// found is remembered in `data_dir`.
    pub async fn import(
        &self,
        name: &ImageName,
        archive: &Path,
        tell: &(dyn Fn(ImportProgress) + Send + Sync),
        data_dir: &Path,
    ) -> Result<ImageInfo, EngineError> {
        self.take(name, ImageSource::Archive(archive), tell, data_dir).await
    }

    /// The same with an image of a registry, until `cancelled` is.
    pub async fn pull(
        &self,
        name: &ImageName,
        request: &PullRequest,
        tell: &(dyn Fn(ImportProgress) + Send + Sync),
        cancelled: &CancellationToken,
        data_dir: &Path,
    ) -> Result<ImageInfo, EngineError> {
        self.take(name, ImageSource::Registry(request, cancelled), tell, data_dir).await
    }

    async fn take(
        &self,
        name: &ImageName,
        source: ImageSource<'_>,
        tell: &(dyn Fn(ImportProgress) + Send + Sync),
        data_dir: &Path,
    ) -> Result<ImageInfo, EngineError> {
        let (context, provider) = (&self.context, &*self.provider);
        let taken = containment::import(context, provider, name, source, tell, data_dir).await;
        provider.pool.try_again(Some(name));
        taken
    }

    /// Ready machines of it go first: nobody uses them.
    pub async fn remove(&self, name: &ImageName) -> Result<Freed, EngineError> {
        let provider = &*self.provider;
        if !provider.pool.keeps(name) {
            return provider.engine.remove_image(name).await;
        }
        let removed = {
            let _withheld = provider.clearance.withhold(name.clone());
            pool::clear(&self.context, provider, name).await;
            provider.engine.remove_image(name).await
        };
        provider.pool.try_again(Some(name));
        removed
    }

    /// Removes what no image and no machine is made of any more.
    pub async fn prune(&self) -> Result<Freed, EngineError> {
        self.provider.engine.prune_images().await
    }
}
