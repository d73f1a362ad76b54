//! What this machine can enforce, and what to do about the rest.

use axum::extract::State;
use futures_util::future::join_all;
use sandbank_engine::{Capabilities, ControlReport, Engine, Standing};
use sandbank_orchestrator::Orchestrator;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ErrorBody;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Doctor {
    /// Every control of the default engine is in force.
    healthy: bool,
    engine: &'static str,
    engine_version: String,
    version: &'static str,
    controls: Vec<ControlView>,
    capabilities: CapabilitiesView,
    /// Further engines that creates may name; absent when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    other_engines: Vec<OtherEngine>,
    /// Settings without effect, likely slips, weak choices.
    notices: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OtherEngine {
    /// It is there, makes sandboxes, and every control is in force.
    healthy: bool,
    engine: &'static str,
    engine_version: String,
    /// Why it makes no sandboxes: it is not there, not tested, or not contained; absent when it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    controls: Vec<ControlView>,
    capabilities: CapabilitiesView,
}

impl OtherEngine {
    async fn examine(orchestrator: &Orchestrator, engine: &dyn Engine) -> Self {
        let withheld = || orchestrator.withheld(engine.name()).map(|error| error.to_string());
        let (unavailable, controls) = (engine.absent().or_else(withheld), engine.controls().await);
        Self {
            healthy: unavailable.is_none() && all_in_force(&controls),
            engine: engine.name(),
            engine_version: engine.version(),
            unavailable,
            controls: controls.into_iter().map(Into::into).collect(),
            capabilities: engine.capabilities().into(),
        }
    }
}

fn all_in_force(controls: &[ControlReport]) -> bool {
    controls.iter().all(|report| report.standing == Standing::InForce)
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
    let orchestrator = app.orchestrator();
    let engine = orchestrator.engine();
    let controls = engine.controls().await;
    let others = orchestrator.engines().skip(1);
    let others = others.map(|other| OtherEngine::examine(orchestrator, &**other));
    Reply(Doctor {
        healthy: all_in_force(&controls),
        engine: engine.name(),
        engine_version: engine.version(),
        version: env!("CARGO_PKG_VERSION"),
        controls: controls.into_iter().map(Into::into).collect(),
        capabilities: engine.capabilities().into(),
        other_engines: join_all(others).await,
        notices: app.settings().notices.clone(),
    })
}
