//! What this machine can enforce, and what to do about the rest.

use axum::extract::State;
use sandbank_engine::{Capabilities, ControlReport, Standing};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ErrorBody;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Doctor {
    /// Every control is in force.
    healthy: bool,
    engine: &'static str,
    engine_version: String,
    version: &'static str,
    controls: Vec<ControlView>,
    capabilities: CapabilitiesView,
    /// Settings without effect, likely slips, weak choices.
    notices: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Control)]
pub(super) struct ControlView {
    name: &'static str,
    /// `in_force`, `weaker` or `missing`.
    #[schema(value_type = String)]
    standing: Standing,
    detail: String,
    fix: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Capabilities)]
pub(super) struct CapabilitiesView {
    network_egress: bool,
    disk_quota: bool,
    memory_limit: bool,
    cpu_limit: bool,
    pids_limit: bool,
    pause: bool,
    concurrent_creates: usize,
}

impl From<ControlReport> for ControlView {
    fn from(report: ControlReport) -> Self {
        let ControlReport { control, standing, detail, fix } = report;
        Self { name: control.name(), standing, detail, fix }
    }
}

impl From<Capabilities> for CapabilitiesView {
    fn from(has: Capabilities) -> Self {
        Self {
            network_egress: has.network_egress,
            disk_quota: has.disk_quota,
            memory_limit: has.memory_limit,
            cpu_limit: has.cpu_limit,
            pids_limit: has.pids_limit,
            pause: has.pause,
            concurrent_creates: has.concurrent_creates,
        }
    }
}

/// Each security control and whether it is in force.
#[utoipa::path(get, path = "/v1/doctor", tag = "daemon",
    responses((status = 200, body = Doctor), (status = "default", body = ErrorBody)))]
pub(super) async fn doctor(State(app): State<App>) -> Reply<Doctor> {
    let engine = app.orchestrator().engine();
    let controls = engine.controls().await;
    Reply(Doctor {
        healthy: controls.iter().all(|report| report.standing == Standing::InForce),
        engine: engine.name(),
        engine_version: engine.version(),
        version: env!("CARGO_PKG_VERSION"),
        controls: controls.into_iter().map(Into::into).collect(),
        capabilities: engine.capabilities().into(),
        notices: app.settings().notices.clone(),
    })
}
