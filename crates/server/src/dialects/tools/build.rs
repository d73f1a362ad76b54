//! The tools as the settings say.

use std::sync::Arc;

use async_trait::async_trait;
use sandbank_orchestrator::Orchestrator;
use sandbank_store::Store;
use sandbank_tools::approval::{ByRules, Desk, Rules};
use sandbank_tools::providers::{Own, Template};
use sandbank_tools::seed::{self, Progress, Seed};
use sandbank_tools::{Sandbox, ToolError, Tools};

use crate::config::{DiskQuota, Settings};

pub(crate) fn build(orchestrator: &Orchestrator, store: &Store, settings: &Settings) -> Tools {
    let config = settings.tools.clone();
    let engine = config.provider.map(|kind| kind.name().to_owned());
    let on = engine.as_deref().unwrap_or_else(|| orchestrator.engine().name());
    let template = Template {
        image: settings.default_image(on).clone(),
        limits: settings.sandboxes.default_limits(true),
        quota_is_optional: !matches!(settings.sandboxes.default_disk, DiskQuota::Required(_)),
        public_proto: settings.ports.public_proto.clone(),
        public_host: settings.ports.public_host.clone(),
        engine,
    };
    let provider = Own::new(orchestrator.clone(), template, config.clone());
    let seed = seed::configured(&config, |name| std::env::var(name).ok());
    let seed = seed.unwrap_or_else(|error| {
        tracing::warn!(%error, "workspaces of the tools cannot be filled");
        Some(Arc::new(Unfilled(error.into())))
    });
    let approvals = &config.approvals.config;
    let patience = approvals.patience().expect("the configuration was checked");
    let desk = Desk::new(store.clone(), patience);
    let rules = Rules::new(approvals).expect("the configuration was checked");
    let approver = ByRules::new(rules, desk.clone());
    Tools::with(config, Arc::new(provider), seed, Arc::new(approver)).with_desk(desk)
}

/// Tools are not there without what the workspace should have: this is why.
struct Unfilled(ToolError);

#[async_trait]
impl Seed for Unfilled {
    async fn fill(&self, _: &dyn Sandbox, _: Progress<'_>) -> Result<(), ToolError> {
        Err(self.0.clone())
    }
}
