//! Which image a runtime label stands for.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sandbank_engine::{Engine, EngineError, ImageName};

use crate::limits::IMAGE_LIST_AGE;

type Known = (Instant, Arc<HashSet<ImageName>>);

/// The names of each engine's images, asked for at most once in a while: creating a sandbox
/// takes less time than listing them.
#[derive(Default)]
pub(crate) struct ImageNames {
    /// By the engine's name.
    known: Mutex<BTreeMap<&'static str, Known>>,
}

impl ImageNames {
    /// The image with the runtime's own name where it was imported, else the default one.
    pub(crate) async fn for_runtime(
        &self,
        engine: &dyn Engine,
        runtime: &str,
        default: &ImageName,
    ) -> Result<ImageName, EngineError> {
        let Ok(own) = runtime.parse::<ImageName>() else { return Ok(default.clone()) };
        let has = self.names(engine).await?.contains(&own);
        Ok(if has { own } else { default.clone() })
    }

    /// All there are.
    pub(crate) async fn names(
        &self,
        engine: &dyn Engine,
    ) -> Result<Arc<HashSet<ImageName>>, EngineError> {
        if let Some(names) = self.fresh(engine.name()) {
            return Ok(names);
        }
        let images = engine.images().await?;
        let names: Arc<HashSet<_>> = Arc::new(images.into_iter().map(|image| image.name).collect());
        self.lock().insert(engine.name(), (Instant::now(), names.clone()));
        Ok(names)
    }

    /// After an import or a removal.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn fresh(&self, engine: &str) -> Option<Arc<HashSet<ImageName>>> {
        let known = self.lock();
        let (time, names) = known.get(engine)?;
        (time.elapsed() < IMAGE_LIST_AGE).then(|| names.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
