//! Numbers for those who watch the daemon, in the text format of Prometheus and OpenMetrics.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbank_engine::NetworkMode;
use sandbank_orchestrator::{PoolStatus, Status};

use crate::app::App;
use crate::config::WorkspaceMode;
use crate::dialects::tools;
use crate::error::ErrorBody;

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;
type Counters = Family<Labels, Counter>;

/// Sandboxes by state, creates by source and under way, the pool, the workspace, and the tools, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "daemon",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    let several = app.orchestrator().engines().count() > 1;
    let mut registry = collect(&app.orchestrator().status(), several);
    if app.settings().workspace.mode != WorkspaceMode::Off {
        let checks = app.readiness().checks(&app).await;
        app.workspace_measured().register(&mut registry, &checks);
    }
    tools::register(&mut registry, &app.tools().counted());
    let text = text(&registry);
    ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response()
}

/// From scratch each time: what is counted, others count. Of `several` engines, each has its pool.
fn collect(status: &Status, several: bool) -> Registry {
    let mut registry = Registry::with_prefix("sandbank");
    let sandboxes = Gauges::default();
    for (state, count) in &status.sandboxes {
        set(&sandboxes, vec![("state", (*state).to_owned())], *count);
    }
    registry.register("sandboxes", "Sandboxes there are, by state", sandboxes);
    let created = Counters::default();
    for (source, total) in [("pool", status.created_from_pool), ("cold", status.created_cold)] {
        created.get_or_create(&vec![("source", source.to_owned())]).inc_by(total);
    }
    registry.register("creates", "Sandboxes created, by the source of the machine", created);
    let under_way = Gauges::default();
    for (stage, count) in [("waiting", status.creates_waiting), ("making", status.creates_making)] {
        set(&under_way, vec![("stage", stage.to_owned())], count as u64);
    }
    registry.register(
        "creates_under_way",
        "Creates that wait for their turn in the engine, and those that have it",
        under_way,
    );
    pool(&mut registry, &status.pool, several);
    registry
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("a text takes everything");
    text
}

fn pool(registry: &mut Registry, pool: &[PoolStatus], several: bool) {
    let [target, ready, being_made] = [(); 3].map(|()| Gauges::default());
    let [claimed, missed] = [(); 2].map(|()| Counters::default());
    for status in pool {
        let labels = labels(status, several);
        set(&target, labels.clone(), status.target as u64);
        set(&ready, labels.clone(), status.ready as u64);
        set(&being_made, labels.clone(), status.being_made as u64);
        claimed.get_or_create(&labels).inc_by(status.claimed_total);
        missed.get_or_create(&labels).inc_by(status.missed_total);
    }
    registry.register("pool_target", "Ready machines the pool is to have", target);
    registry.register("pool_ready", "Ready machines", ready);
    registry.register("pool_being_made", "Machines being made for the pool", being_made);
    registry.register("pool_claimed", "Ready machines that creates took", claimed);
    registry.register("pool_missed", "Creates that found no ready machine", missed);
}

fn labels(status: &PoolStatus, several: bool) -> Labels {
    let network = match status.network {
        NetworkMode::Default => "default",
        NetworkMode::None => "none",
    };
    let mut labels = vec![("image", status.image.to_string()), ("network", network.to_owned())];
    if several {
        labels.push(("engine", status.engine.to_owned()));
    }
    labels
}

fn set(gauges: &Gauges, labels: Labels, value: u64) {
    gauges.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_line_with_its_labels() {
        let pool = PoolStatus {
            engine: "native",
            image: "library/python:3.13".parse().unwrap(),
            network: NetworkMode::None,
            target: 4,
            ready: 2,
            being_made: 1,
            claimed_total: 7,
            missed_total: 3,
        };
        let status = Status {
            sandboxes: [("running", 5), ("paused", 1)].into(),
            created_from_pool: 7,
            created_cold: 9,
            creates_waiting: 6,
            creates_making: 4,
            pool: vec![pool],
        };
        let text = super::text(&collect(&status, false));
        let of = r#"{image="library/python:3.13",network="none"}"#;
        for line in [
            r#"sandbank_sandboxes{state="running"} 5"#.to_owned(),
            r#"sandbank_sandboxes{state="paused"} 1"#.to_owned(),
            r#"sandbank_creates_total{source="pool"} 7"#.to_owned(),
            r#"sandbank_creates_total{source="cold"} 9"#.to_owned(),
            r#"sandbank_creates_under_way{stage="waiting"} 6"#.to_owned(),
            r#"sandbank_creates_under_way{stage="making"} 4"#.to_owned(),
            format!("sandbank_pool_target{of} 4"),
            format!("sandbank_pool_ready{of} 2"),
            format!("sandbank_pool_being_made{of} 1"),
            format!("sandbank_pool_claimed_total{of} 7"),
            format!("sandbank_pool_missed_total{of} 3"),
            "# EOF".to_owned(),
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
        }
        let text = super::text(&collect(&status, true));
        let of = r#"{image="library/python:3.13",network="none",engine="native"}"#;
        assert!(text.contains(&format!("sandbank_pool_ready{of} 2")), "{text}");
    }
}
