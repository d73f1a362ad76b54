//! The engines of this daemon, and what the orchestrator keeps beside each: turns, clearance, pool.
//!
//! A sandbox's row says which engine its machine is of, for good; everything that is asked of the
//! machine goes to that one. What becomes of one engine is nothing to the others.

use std::sync::Arc;

use sandbank_engine::{Engine, EngineError, ImageName};

use crate::containment::Clearance;
use crate::pool::Pool;
use crate::turns::{Turn, Turns};
use crate::{OrchestratorError, Settings};

/// One engine or several, each name once. The first makes the machines of those who name none.
pub struct Engines {
    default: Arc<dyn Engine>,
    others: Vec<Arc<dyn Engine>>,
}

impl Engines {
    pub fn new(default: Arc<dyn Engine>, others: Vec<Arc<dyn Engine>>) -> Self {
        Self { default, others }
    }
}

impl From<Arc<dyn Engine>> for Engines {
    fn from(only: Arc<dyn Engine>) -> Self {
        Self::new(only, Vec::new())
    }
}

impl<E: Engine> From<Arc<E>> for Engines {
    fn from(only: Arc<E>) -> Self {
        Self::new(only, Vec::new())
    }
}

pub(crate) struct Provider {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) turns: Turns,
    /// Nobody has said how many there are at a time but the engine.
    turns_as_advised: bool,
    pub(crate) clearance: Arc<Clearance>,
    pub(crate) pool: Pool,
}

impl Provider {
    fn new(engine: Arc<dyn Engine>, settings: &Settings, is_default: bool) -> Arc<Self> {
        let advised = engine.capabilities().concurrent_creates;
        let name = engine.name();
        let is_ours = |wanted: &Option<String>| match wanted {
            Some(wanted) => wanted == name,
            None => is_default,
        };
        let pool = settings.pool.iter().filter(|entry| is_ours(&entry.recipe.engine));
        Arc::new(Self {
            turns: Turns::new(settings.concurrent_creates.unwrap_or(advised)),
            turns_as_advised: settings.concurrent_creates.is_none(),
            clearance: Arc::default(),
            pool: Pool::new(name, pool),
            engine,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.engine.name()
    }

    /// An engine that was awaited gives its advice when it is there.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>, OrchestratorError> {
        if self.turns_as_advised {
            self.turns.resize(self.engine.capabilities().concurrent_creates);
        }
        self.turns.take().await
    }

    /// Whether a machine of this image may be made now.
    pub(crate) fn check(&self, image: &ImageName) -> Result<(), OrchestratorError> {
        if let Some(reason) = self.engine.absent() {
            return Err(EngineError::Unavailable(reason).into());
        }
        self.clearance.check(image)
    }
}

pub(crate) struct Providers {
    default: Arc<Provider>,
    others: Vec<Arc<Provider>>,
}

impl Providers {
    pub(crate) fn new(engines: Engines, settings: &Settings) -> Self {
        let other = |engine| Provider::new(engine, settings, false);
        Self {
            default: Provider::new(engines.default, settings, true),
            others: engines.others.into_iter().map(other).collect(),
        }
    }

    pub(crate) fn default(&self) -> &Arc<Provider> {
        &self.default
    }

    pub(crate) fn is_default(&self, provider: &Provider) -> bool {
        std::ptr::eq(&*self.default, provider)
    }

    /// The default one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Provider>> {
        std::iter::once(&self.default).chain(&self.others)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Provider>> {
        self.all().find(|provider| provider.name() == name)
    }

    /// The one that is named, else the default one.
    pub(crate) fn named(&self, name: Option<&str>) -> Result<&Arc<Provider>, OrchestratorError> {
        let Some(name) = name else { return Ok(&self.default) };
        self.find(name).ok_or_else(|| OrchestratorError::NoSuchEngine {
            name: name.chars().take(SHOWN_CHARACTERS).collect(),
            configured: self.all().map(|provider| provider.name()).collect(),
        })
    }
}

/// Of a name that is not an engine's.
const SHOWN_CHARACTERS: usize = 40;
