//! Sandboxes as clients see them.

use sandbank_engine::{Limits, NetworkMode};
use sandbank_orchestrator::{Published, SandboxInfo};
use serde::Serialize;
use utoipa::ToSchema;

use super::ports::url;
use crate::app::App;
use crate::auth::Caller;

/// Times are Unix times in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Sandbox)]
pub(super) struct SandboxView {
    id: String,
    key: String,
    /// `creating`, `running`, `paused`, `stopping`, `gone` or `failed`.
    state: &'static str,
    /// Why it is stopping, gone or failed.
    reason: Option<String>,
    engine: String,
    image: String,
    runtime: String,
    /// `none` or `default`.
    network: &'static str,
    limits: LimitsView,
    /// Ports that may be published.
    ports: Vec<u16>,
    published: Vec<PublishedView>,
    /// The kept workspace it has; none for one that ends with it.
    workspace: Option<String>,
    created_at_ms: u64,
    last_active_at_ms: u64,
    idle_ttl_ms: u64,
    /// When it will be stopped if nobody uses it; none while it is busy.
    expires_at_ms: Option<u64>,
    /// When it will be stopped whatever it does.
    ends_at_ms: Option<u64>,
    busy: bool,
    commands_running: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Limits)]
pub(super) struct LimitsView {
    /// In thousandths of a core.
    cpu_millis: u32,
    memory_bytes: u64,
    pids: u32,
    disk_bytes: Option<u64>,
    tmp_bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Published)]
pub(super) struct PublishedView {
    port: u16,
    host_port: u16,
    address: String,
    url: String,
}

impl PublishedView {
    pub(super) fn new(app: &App, caller: &Caller, published: &Published) -> Self {
        Self {
            port: published.port,
            host_port: published.host_port,
            address: published.address.to_string(),
            url: url(app, caller, published),
        }
    }
}

impl From<Limits> for LimitsView {
    fn from(limits: Limits) -> Self {
        Self {
            cpu_millis: limits.cpu_millis,
            memory_bytes: limits.memory_bytes,
            pids: limits.pids,
            disk_bytes: limits.disk_bytes,
            tmp_bytes: limits.tmp_bytes,
        }
    }
}

impl SandboxView {
    pub(super) fn new(app: &App, caller: &Caller, info: SandboxInfo) -> Self {
        let published = info.published.iter();
        Self {
            published: published.map(|port| PublishedView::new(app, caller, port)).collect(),
            id: info.id.into(),
            key: info.key.into(),
            state: info.state.as_str(),
            reason: info.reason,
            engine: info.engine,
            image: info.image.into(),
            runtime: info.runtime,
            network: match info.network {
                NetworkMode::None => "none",
                NetworkMode::Default => "default",
            },
            limits: info.limits.into(),
            ports: info.ports,
            workspace: info.workspace.map(String::from),
            created_at_ms: info.created_at_ms,
            last_active_at_ms: info.last_active_at_ms,
            idle_ttl_ms: info.idle_ttl_ms,
            expires_at_ms: info.expires_at_ms,
            ends_at_ms: info.ends_at_ms,
            busy: info.busy,
            commands_running: info.commands_running,
        }
    }
}
