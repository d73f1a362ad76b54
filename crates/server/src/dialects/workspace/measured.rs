//! What the workspace's routes and WebSockets did, in numbers.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::error::switched_off;
use super::groups::Group;
use crate::app::App;
use crate::config::WorkspaceMode;
use crate::readiness::{Check, Standing};

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;

/// From a file in memory to a search that takes its time, in seconds.
const BUCKETS: [f64; 10] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// Counted since the daemon's start.
pub(crate) struct Measured {
    answered: Counters,
    took: Family<Labels, Histogram>,
    attach_failures: Counters,
    disconnects: Counters,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            answered: Counters::default(),
            took: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            attach_failures: Counters::default(),
            disconnects: Counters::default(),
        }
    }
}

/// The middleware: counts, and says of every route when the workspace is off.
pub(crate) async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let group = route.and_then(|route| Group::of(request.method(), route.as_str()));
    let Some(group) = group else { return next.run(request).await };
    let mode = match app.settings().workspace.mode {
        WorkspaceMode::Off => return switched_off().into_response(),
        mode => name(mode),
    };
    let begin = Instant::now();
    let response = next.run(request).await;
    app.workspace_measured().answered(mode, group, response.status(), begin.elapsed());
    response
}

pub(crate) fn name(mode: WorkspaceMode) -> &'static str {
    match mode {
        WorkspaceMode::Off => "off",
        WorkspaceMode::Local => "local",
        WorkspaceMode::Sandbox => "sandbox",
        WorkspaceMode::Remote => "remote",
    }
}

impl Measured {
    fn answered(&self, mode: &str, group: Group, status: StatusCode, took: Duration) {
        let labels = vec![("mode", mode.to_owned()), ("group", group.name().to_owned())];
        self.took.get_or_create(&labels).observe(took.as_secs_f64());
        let labels = [labels, vec![("status", status.as_str().to_owned())]].concat();
        self.answered.get_or_create(&labels).inc();
    }

    /// A WebSocket was accepted and there is nothing behind it. `kind` is `pty` or `chat`.
    pub(crate) fn attach_failed(&self, kind: &str) {
        self.attach_failures.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    /// A client was gone without being told to go.
    pub(crate) fn disconnected(&self, kind: &str) {
        self.disconnects.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    /// Beside the daemon's own; `checks` are what its readiness is made of.
    pub(crate) fn register(&self, registry: &mut Registry, checks: &[Check]) {
        registry.register(
            "workspace_requests",
            "Requests of the workspace's routes, by where it is, kind and status",
            self.answered.clone(),
        );
        registry.register("workspace_request_seconds", "Time to their answers", self.took.clone());
        registry.register(
            "workspace_attach_failures",
            "WebSockets that found nothing to attach to",
            self.attach_failures.clone(),
        );
        registry.register(
            "workspace_disconnects",
            "WebSockets whose client was suddenly gone",
            self.disconnects.clone(),
        );
        let ready = Family::<Labels, Gauge>::default();
        for check in checks {
            let healthy = i64::from(check.standing == Standing::Healthy);
            ready.get_or_create(&vec![("check", check.name.to_owned())]).set(healthy);
        }
        registry.register("ready", "What the daemon depends on: 1 is healthy", ready);
    }
}
