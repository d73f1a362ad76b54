//! Which image a runtime label stands for.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use sandbank_engine::{Engine, EngineError, ImageName};

use crate::limits::IMAGE_LIST_AGE;

/// The names of the engine's images, asked for at most once in a while: creating a sandbox
/// takes less time than listing them.
#[derive(Default)]
pub(crate) struct ImageNames {
    known: Mutex<Option<(Instant, HashSet<ImageName>)>>,
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
        if let Some(has) = self.fresh(&own) {
            return Ok(if has { own } else { default.clone() });
        }
        let names: HashSet<ImageName> =
            engine.images().await?.into_iter().map(|image| image.name).collect();
        let has = names.contains(&own);
        *self.lock() = Some((Instant::now(), names));
        Ok(if has { own } else { default.clone() })
    }

    /// After an import or a removal.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn fresh(&self, name: &ImageName) -> Option<bool> {
        let known = self.lock();
        let (time, names) = known.as_ref()?;
        (time.elapsed() < IMAGE_LIST_AGE).then(|| names.contains(name))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, HashSet<ImageName>)>> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
