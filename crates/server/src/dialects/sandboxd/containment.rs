//! Whether a sandbox holds what is in it, found by attacking it.

use axum::extract::State;
use sandbank_orchestrator::containment::{Containment, ProbeResult, ProbeStanding};
use sandbank_protocol::containment::Probe;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::SandboxPath;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Containment)]
pub(super) struct ContainmentView {
    sandbox_id: String,
    /// No control that is claimed failed.
    contained: bool,
    duration_ms: u64,
    probes: Vec<ProbeView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ContainmentProbe)]
pub(super) struct ProbeView {
    name: String,
    /// The control that it proves.
    control: &'static str,
    attack: &'static str,
    /// What must come of it.
    refusal: &'static str,
    /// The same done legitimately, which must work.
    counterpart: &'static str,
    /// `held`, `failed`, `not_claimed` or `not_tried`.
    #[schema(value_type = String)]
    standing: ProbeStanding,
    evidence: String,
}

impl From<ProbeResult> for ProbeView {
    fn from(result: ProbeResult) -> Self {
        let probe = Probe::named(&result.probe);
        Self {
            control: result.control.name(),
            attack: probe.map_or("", |probe| probe.attack),
            refusal: probe.map_or("", |probe| probe.refusal),
            counterpart: probe.map_or("", |probe| probe.counterpart),
            name: result.probe,
            standing: result.standing,
            evidence: result.evidence,
        }
    }
}

/// Attack the sandbox from inside and look at it from the host, and say what held. Limits are read,
/// not run into; what the inside says is a hostile sandbox's word.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/containment", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = ContainmentView), (status = "default", body = ErrorBody)))]
pub(super) async fn containment(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<ContainmentView>> {
    let found: Containment = app.orchestrator().containment(&id).await?;
    if !found.holds() {
        let controls: Vec<_> = found.failed_controls().iter().map(|c| c.name()).collect();
        tracing::error!(sandbox = %id, controls = controls.join(","), "containment failed");
    }
    Ok(Reply(ContainmentView {
        sandbox_id: id.into(),
        contained: found.holds(),
        duration_ms: found.duration_ms,
        probes: found.probes.into_iter().map(Into::into).collect(),
    }))
}
