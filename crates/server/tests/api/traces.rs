//! Spans of requests, as a collector gets them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use sandbank_engine::SandboxId;
use sandbank_traces::{Endpoint, Sampling, TraceSettings, Traces};
use serde_json::json;
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt;

use crate::everywhere::remote;
use crate::log_lines::capture;
use crate::world::World;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT: &str = "b7ad6b7169203331";

/// A receiver of OTLP over HTTP.
struct Collector {
    url: String,
    bodies: Arc<Mutex<Vec<Bytes>>>,
}

impl Collector {
    async fn start() -> Self {
        let bodies: Arc<Mutex<Vec<Bytes>>> = Arc::default();
        let kept = bodies.clone();
        let take = move |body: Bytes| async move { kept.lock().unwrap().push(body) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, bodies }
    }

    fn spans(&self) -> Vec<Span> {
        let decode = |body: &Bytes| ExportTraceServiceRequest::decode(body.clone()).unwrap();
        let requests: Vec<_> = self.bodies.lock().unwrap().iter().map(decode).collect();
        let resources = requests.into_iter().flat_map(|request| request.resource_spans);
        resources.flat_map(|one| one.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    fn raw(&self) -> Vec<u8> {
        self.bodies.lock().unwrap().concat()
    }
}

fn open(collector: &Collector) -> (Traces, tracing::subscriber::DefaultGuard) {
    // Whoever listens for ever: see there.
    drop(capture());
    let traces = Traces::open(&TraceSettings {
        endpoint: Endpoint::Collector(collector.url.clone()),
        headers: None,
        service_name: "test".to_owned(),
        sampling: Sampling::parse("parentbased_always_on", None).unwrap(),
    });
    let traces = traces.unwrap();
    let subscriber = tracing_subscriber::registry().with(traces.layer());
    (traces, tracing::subscriber::set_default(subscriber))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(span: &Span, name: &str) -> Option<Any> {
    let found = span.attributes.iter().find(|pair| pair.key == name)?;
    found.value.clone()?.value
}

/// The one span with this name below that one.
fn child<'a>(spans: &'a [Span], name: &str, parent: &str) -> &'a Span {
    let fits = |span: &&Span| span.name == name && hex(&span.parent_span_id) == parent;
    let found: Vec<&Span> = spans.iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{name} below {parent}: {spans:#?}");
    found[0]
}

#[tokio::test]
async fn a_request_is_one_trace_from_the_client_to_the_runner_of_another_machine() {
    let collector = Collector::start().await;
    let (traces, _guard) = open(&collector);
    let place = remote(&[]).await;
    let world = &place.world;
    let path = "/api/file?path=private-name&token=query-secret";
    let request = world.api.request("PUT", path).json(&json!({ "content": "private-body" }));
    let request = request.header("traceparent", format!("00-{TRACE}-{CLIENT}-01"));
    let request = request.header("tracestate", "vendor=forged").header("x-request-id", "follow-1");
    assert_eq!(request.send().await.unwrap().status().as_u16(), 200);
    let token = world.token.clone();
    place.end().await;
    traces.end().await;
    let spans: Vec<Span> =
        collector.spans().into_iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let http = child(&spans, "PUT /api/file", CLIENT);
    assert_eq!(attribute(http, "request_id"), Some(Any::StringValue("follow-1".into())));
    assert_eq!(attribute(http, "http.response.status_code"), Some(Any::IntValue(200)));
    let call = child(&spans, "PUT /files", &hex(&http.span_id));
    let service = child(&spans, "PUT /files", &hex(&call.span_id));
    assert_eq!(attribute(service, "request_id"), Some(Any::StringValue("follow-1".into())));
    child(&spans, "PUT /files", &hex(&service.span_id));
    for span in &spans {
        assert!(
            span.start_time_unix_nano <= span.end_time_unix_nano && span.trace_state.is_empty()
        );
    }
    let raw = collector.raw();
    let raw = String::from_utf8_lossy(&raw);
    assert!(raw.contains("/api/file"));
    for private in ["private-name", "private-body", "query-secret", "forged", &*token] {
        assert!(!raw.contains(private), "{private} was exported");
    }
}

#[tokio::test]
async fn what_is_asked_of_the_orchestrator_is_part_of_the_trace_and_a_trace_may_begin_here() {
    let collector = Collector::start().await;
    let (traces, _guard) = open(&collector);
    let world = World::start().await;
    let create = world.api.request("POST", "/v1/sandboxes").json(&json!({ "sessionKey": "t" }));
    let create = create.header("traceparent", format!("00-{TRACE}-{CLIENT}-01"));
    let created: serde_json::Value = create.send().await.unwrap().json().await.unwrap();
    let id = created["sandboxId"].as_str().or(created["id"].as_str()).unwrap().to_owned();
    let (code, _, _) = world.api.run(&id, "true").await.unwrap();
    assert_eq!(code, 0);
    // One that makes no sense is as none.
    let odd = world.api.request("GET", "/v1/sandboxes").header("traceparent", "00-forged");
    assert!(odd.send().await.unwrap().status().is_success());
    world.api.request("DELETE", &format!("/v1/sandboxes/{id}")).send().await.unwrap();
    traces.end().await;
    let spans = collector.spans();
    let http = child(&spans, "POST /v1/sandboxes", CLIENT);
    assert_eq!(hex(&http.trace_id), TRACE);
    let operation = child(&spans, "create", &hex(&http.span_id));
    assert_eq!(hex(&operation.trace_id), TRACE);
    let own = child(&spans, "GET /v1/sandboxes", "");
    assert_ne!(hex(&own.trace_id), TRACE);
    let start = spans.iter().find(|span| {
        span.name.starts_with("POST /v1/sandboxes/") && span.name.ends_with("/commands")
    });
    let start = start.expect("the start of a command is a span");
    // Whoever waits for its end in the background attaches, too.
    let attached = spans
        .iter()
        .filter(|span| span.name == "attach" && span.parent_span_id == start.span_id)
        .filter(|span| attribute(span, "sandbox") == Some(Any::StringValue(id.clone())));
    assert!(attached.count() >= 1, "{spans:#?}");
    let call = child(&spans, "POST /commands", &hex(&start.span_id));
    assert_eq!(call.trace_id, start.trace_id);
}

#[tokio::test]
async fn an_operation_that_failed_is_an_error_of_its_span_and_a_callers_mistake_is_not() {
    let collector = Collector::start().await;
    let (traces, _guard) = open(&collector);
    // An address that no machine has.
    let world = World::with(&[("ports.listen_address", "192.0.2.1")]).await;
    let id = world.api.create_with(json!({ "sessionKey": "t", "ports": [3000] })).await.unwrap();
    for (path, status) in [
        (format!("/v1/sandboxes/{id}/ports/3000"), 502),
        (format!("/v1/sandboxes/{}/commands", SandboxId::random()), 404),
    ] {
        let answer = world.api.request("GET", &path).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path}");
    }
    traces.end().await;
    let spans = collector.spans();
    for (name, expected) in [
        ("publish", StatusCode::Error),
        ("create", StatusCode::Unset),
        ("attach", StatusCode::Unset),
    ] {
        let span = spans.iter().find(|span| span.name == name).expect(name);
        let status = span.status.as_ref().map_or(StatusCode::Unset, |status| status.code());
        assert_eq!(status, expected, "{span:#?}");
    }
}
