//! Whether the daemon can do its work: what it depends on, looked at every few seconds at most.
//!
//! Everybody may ask, so a check names what is wrong and what to do, never addresses, paths or
//! what another machine said: the log has those.

use std::sync::Arc;
use std::time::Instant;

use sandbank_workspace::{API_VERSION, BreakerState, Place, PlaceErrorKind, PlaceHealth};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use crate::app::App;
use crate::config::WorkspaceMode;
use crate::limits::{READINESS_AGE, READINESS_PATIENCE};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    Healthy,
    Degraded,
    Unhealthy,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) standing: Standing,
    /// Nothing works without it.
    pub(crate) critical: bool,
    pub(crate) message: String,
}

impl Check {
    fn new(name: &'static str, standing: Standing, message: impl Into<String>) -> Self {
        Self { name, standing, critical: true, message: message.into() }
    }

    fn is_healthy(&self) -> bool {
        self.standing == Standing::Healthy
    }
}

/// What the last look at the workspace found.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Arc<[Check]>)>>);

impl Readiness {
    /// Of everything; the workspace's are those whose names begin with `workspace_`.
    pub(crate) async fn checks(&self, app: &App) -> Vec<Check> {
        let mut checks = vec![data_directory(app), engine(app)];
        checks.extend_from_slice(&self.workspace(app).await);
        checks
    }

    /// Whoever finds the last look too old waits for the next one, which has little time.
    async fn workspace(&self, app: &App) -> Arc<[Check]> {
        let mut seen = self.0.lock().await;
        if let Some((at, checks)) = &*seen
            && at.elapsed() < READINESS_AGE
        {
            return checks.clone();
        }
        let checks: Arc<[Check]> = match (app.settings().workspace.mode, app.workspace_place()) {
            (WorkspaceMode::Off, _) => Arc::default(),
            (_, Some(place)) => of_place(look(place).await).into(),
            (_, None) => in_sandbox(app).into(),
        };
        *seen = Some((Instant::now(), checks.clone()));
        checks
    }
}

/// What must be there is there.
pub(crate) fn is_ready(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.is_healthy() || !check.critical)
}

pub(crate) fn all_healthy(checks: &[Check]) -> bool {
    checks.iter().all(Check::is_healthy)
}

fn data_directory(app: &App) -> Check {
    match app.data_dir().trouble() {
        None => Check::new("data_directory", Standing::Healthy, "it can be written"),
        Some(_) => {
            let message = "it cannot be used; the daemon's log and `sandbank doctor` say why";
            Check::new("data_directory", Standing::Unhealthy, message)
        }
    }
}

/// A workspace that is not in a sandbox does without.
fn engine(app: &App) -> Check {
    let critical = app.workspace_place().is_none();
    let orchestrator = app.orchestrator();
    let engine = orchestrator.engine();
    let makes_none = engine.silent().is_some() || orchestrator.withheld(engine.name()).is_some();
    let (standing, message) = match makes_none {
        false => (Standing::Healthy, format!("{} makes sandboxes", engine.name())),
        true => (
            Standing::Unhealthy,
            format!("{} makes no sandboxes; `sandbank doctor` says why", engine.name()),
        ),
    };
    Check { critical, ..Check::new("engine", standing, message) }
}

/// Its sandbox is made when it is needed, so the engine is all there is to depend on.
fn in_sandbox(app: &App) -> Vec<Check> {
    let Check { standing, .. } = engine(app);
    let message = match standing {
        Standing::Healthy => "its sandbox is there, or is made when it is needed",
        _ => "its sandbox cannot be made",
    };
    let version = format!("{API_VERSION}, the daemon's own");
    vec![
        Check::new("workspace_service", standing, message),
        Check::new("workspace_version", Standing::Healthy, version),
    ]
}

/// None where there was no answer in time. The look goes on: it may be starting a runner.
async fn look(place: &Arc<dyn Place>) -> Option<PlaceHealth> {
    let place = place.clone();
    let looking = tokio::spawn(async move { place.health().await });
    tokio::time::timeout(READINESS_PATIENCE, looking).await.ok()?.ok()
}

fn of_place(health: Option<PlaceHealth>) -> Vec<Check> {
    let Some(health) = health else {
        let message = "it did not answer in time";
        return vec![
            Check::new("workspace_service", Standing::Unknown, message),
            Check::new("workspace_version", Standing::Unknown, message),
        ];
    };
    let mut checks = match &health.wrong {
        None => {
            let version = health.version.as_deref().unwrap_or("unknown");
            vec![
                Check::new("workspace_service", Standing::Healthy, "its runner answers"),
                Check::new("workspace_version", Standing::Healthy, format!("runner {version}")),
            ]
        }
        Some(wrong) => {
            let message = format!("{}: {}", wrong.kind.name(), wrong.next_step);
            let version = match wrong.kind {
                PlaceErrorKind::Version => Standing::Unhealthy,
                _ => Standing::Unknown,
            };
            vec![
                Check::new("workspace_service", Standing::Unhealthy, message.clone()),
                Check::new("workspace_version", version, message),
            ]
        }
    };
    if let Some(breaker) = health.breaker {
        let standing = match breaker {
            BreakerState::Closed => Standing::Healthy,
            BreakerState::HalfOpen => Standing::Degraded,
            BreakerState::Open { .. } => Standing::Unhealthy,
        };
        // The service's own check decides; this one says whether it is tried at all.
        let check = Check::new("workspace_breaker", standing, breaker.name());
        checks.push(Check { critical: false, ..check });
    }
    checks
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandbank_workspace::{PlaceState, Wrong};

    use super::*;

    fn standings(checks: &[Check]) -> Vec<(&str, Standing)> {
        checks.iter().map(|check| (check.name, check.standing)).collect()
    }

    #[test]
    fn what_is_wrong_is_named_without_what_the_other_side_said() {
        let wrong = |kind| Wrong {
            kind,
            message: "10.0.0.1:9 said private things".to_owned(),
            next_step: "do this",
        };
        let unhealthy = |kind, breaker| PlaceHealth {
            state: PlaceState::Unhealthy,
            breaker: Some(breaker),
            version: None,
            wrong: Some(wrong(kind)),
        };
        let open = BreakerState::Open { retry_in: Duration::from_secs(9) };
        let checks = of_place(Some(unhealthy(PlaceErrorKind::Unreachable, open)));
        assert_eq!(
            standings(&checks),
            [
                ("workspace_service", Standing::Unhealthy),
                ("workspace_version", Standing::Unknown),
                ("workspace_breaker", Standing::Unhealthy),
            ]
        );
        assert_eq!(checks[0].message, "unreachable: do this");
        assert!(checks.iter().all(|check| !check.message.contains("10.0.0.1")), "{checks:?}");
        let checks = of_place(Some(unhealthy(PlaceErrorKind::Version, BreakerState::Closed)));
        assert_eq!(checks[1].standing, Standing::Unhealthy);
        assert!(!is_ready(&checks) && !is_ready(&of_place(None)));
        let healthy = PlaceHealth {
            state: PlaceState::Healthy,
            breaker: Some(BreakerState::HalfOpen),
            version: Some("1".to_owned()),
            wrong: None,
        };
        let checks = of_place(Some(healthy));
        assert!(is_ready(&checks) && !all_healthy(&checks), "{checks:?}");
    }
}
