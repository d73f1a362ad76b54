//! Sandboxes of this daemon itself, on whatever engine makes them: no other server is asked.

mod command;
mod look;
mod sandbox;
mod shell;

use std::sync::Arc;

use async_trait::async_trait;
use sandbank_channel::ChannelError;
use sandbank_engine::{Engine, ImageName, Limits, NetworkMode};
use sandbank_orchestrator::{CreateRequest, Orchestrator, OrchestratorError, SandboxKey};
use sandbank_protocol::FaultCode;

use crate::limits::{MAX_FOUND_SESSIONS, MAX_REASON_CHARS};
use crate::{Config, Network, Opened, Provider, ToolError};
use sandbox::OwnSandbox;
use shell::Profiles;

/// Keys of the tools' sandboxes begin so, and no caller's do.
pub const KEY_PREFIX: &str = "tools:";

const MIB: u64 = 1 << 20;

/// What the tools' sandboxes are made of, beyond what their own section says.
#[derive(Debug, Clone)]
pub struct Template {
    /// None: the one that makes the sandboxes of callers who do not say.
    pub engine: Option<String>,
    /// Where the runtime has no image of its own.
    pub image: ImageName,
    /// Cores and memory are the section's.
    pub limits: Limits,
    /// A quota that the engine cannot enforce is left out, because nobody asked for it.
    pub quota_is_optional: bool,
    /// `http` or `https`, and the host under which ports are reached where that is said.
    pub public_proto: String,
    pub public_host: Option<String>,
}

pub struct Own {
    orchestrator: Orchestrator,
    template: Arc<Template>,
    config: Config,
}

impl Own {
    pub fn new(orchestrator: Orchestrator, template: Template, config: Config) -> Self {
        Self { orchestrator, template: Arc::new(template), config }
    }

    fn engine(&self) -> Result<&Arc<dyn Engine>, OrchestratorError> {
        self.orchestrator.engine_named(self.template.engine.as_deref())
    }

    async fn request(&self, session: &str) -> Result<CreateRequest, ToolError> {
        let engine = self.engine().map_err(unavailable)?;
        let config = &self.config;
        let mut limits = self.template.limits.clone();
        limits.cpu_millis = u32::try_from(config.sandbox.vcpus * 1000).unwrap_or(u32::MAX);
        limits.memory_bytes = config.memory_mb * MIB;
        if self.template.quota_is_optional && !engine.capabilities().disk_quota {
            limits.disk_bytes = None;
        }
        Ok(CreateRequest {
            key: key(session)?,
            engine: self.template.engine.clone(),
            image: self.image(&**engine).await?,
            runtime: config.sandbox.runtime.clone(),
            idle_ttl: Some(config.idle_ttl),
            max_lifetime: None,
            limits,
            network: match config.network {
                Network::Default => NetworkMode::Default,
                Network::None => NetworkMode::None,
            },
            ports: config.sandbox.ports.clone(),
            env: Default::default(),
            workspace: None,
        })
    }

    /// The image with the runtime's own name where there is one.
    async fn image(&self, engine: &dyn Engine) -> Result<ImageName, ToolError> {
        let Ok(own) = self.config.sandbox.runtime.parse::<ImageName>() else {
            return Ok(self.template.image.clone());
        };
        let images = engine.images().await.map_err(|error| unavailable(error.into()))?;
        let has = images.iter().any(|image| image.name == own);
        Ok(if has { own } else { self.template.image.clone() })
    }
}

#[async_trait]
impl Provider for Own {
    fn name(&self) -> &'static str {
        self.engine().map_or("native", |engine| engine.name())
    }

    async fn health(&self) -> Result<(), String> {
        let engine = self.engine().map_err(|error| error.to_string())?;
        if let Some(reason) = engine.absent() {
            return Err(format!("the engine {} is not there: {reason}", engine.name()));
        }
        if let Some(reason) = self.orchestrator.withheld(engine.name()) {
            return Err(reason.to_string());
        }
        // An engine that is another program's may be away without having said so.
        engine.images().await.map(drop).map_err(|error| clipped(&error.to_string()))
    }

    async fn open(&self, session: &str) -> Result<Opened, ToolError> {
        let request = self.request(session).await?;
        let made = self.orchestrator.create(request).await.map_err(unavailable)?;
        let sandbox = OwnSandbox {
            orchestrator: self.orchestrator.clone(),
            name: made.id.to_string(),
            id: made.id,
            template: self.template.clone(),
            profiles: Profiles::of(&self.config),
        };
        Ok(Opened { sandbox: Arc::new(sandbox), created: made.created })
    }

    async fn sessions(&self) -> Vec<String> {
        let known = self.orchestrator.with_key_prefix(KEY_PREFIX, MAX_FOUND_SESSIONS).await;
        let living = known.unwrap_or_default().into_iter().filter(|info| !info.state.is_over());
        let session = |key: SandboxKey| key.as_str().strip_prefix(KEY_PREFIX).map(str::to_owned);
        living.filter_map(|info| session(info.key)).collect()
    }

    async fn close(&self, session: &str) -> Result<(), ToolError> {
        let found = self.orchestrator.find_key(&key(session)?).await.map_err(unavailable)?;
        if let Some(info) = found.filter(|info| !info.state.is_over()) {
            self.orchestrator.stop(&info.id, "tools").await.map_err(unavailable)?;
        }
        Ok(())
    }
}

fn key(session: &str) -> Result<SandboxKey, ToolError> {
    let key = format!("{KEY_PREFIX}{session}").parse();
    key.map_err(|_| ToolError::InvalidInput("the session's name cannot be used".to_owned()))
}

/// The sandbox could not be had.
fn unavailable(error: OrchestratorError) -> ToolError {
    let text = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    ToolError::Unavailable(clipped(&text))
}

/// Something did not happen in it.
fn failed(error: OrchestratorError) -> ToolError {
    if let OrchestratorError::Channel(inner) = &error
        && let ChannelError::Refused(fault) = &**inner
    {
        let text = clipped(&fault.message);
        return match fault.code {
            FaultCode::NotFound => ToolError::NotFound(text),
            FaultCode::Invalid | FaultCode::OutsideWorkspace | FaultCode::WrongKind => {
                ToolError::InvalidInput(text)
            }
            FaultCode::LimitReached | FaultCode::TimedOut => ToolError::Unavailable(text),
            _ => ToolError::Failed(text),
        };
    }
    match &error {
        OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. } => ToolError::Unavailable(
            "the sandbox has ended; call again to get a new one, with an empty workspace"
                .to_owned(),
        ),
        _ => unavailable(error),
    }
}

/// What a runner says comes from inside a sandbox: bounded, and on one line.
fn clipped(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.take(MAX_REASON_CHARS).collect()
}
