//! The W3C's `traceparent`, both ways. `tracestate` is not taken: it is text of a stranger's.

use http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_http::HeaderInjector;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use sandbank_channel::trace::Propagator;
use sandbank_protocol::{TRACEPARENT_HEADER, trace_id};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

#[derive(Default)]
pub(crate) struct W3c(TraceContextPropagator);

impl Propagator for W3c {
    fn inject(&self, span: &Span, headers: &mut HeaderMap) {
        self.0.inject_context(&span.context(), &mut HeaderInjector(headers));
        headers.remove("tracestate");
    }

    fn adopt(&self, span: &Span, headers: &HeaderMap) {
        let parent = self.0.extract(&Parent(headers));
        if parent.span().span_context().is_valid() {
            // Fails where nobody collects: then there is nothing to be a child of.
            let _ = span.set_parent(parent);
        }
    }

    fn end(&self, span: &Span) {
        if !span.is_disabled() {
            span.context().span().end();
        }
    }
}

/// The one header, where it stands once and is what it should be.
struct Parent<'a>(&'a HeaderMap);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        if key != TRACEPARENT_HEADER {
            return None;
        }
        let mut values = self.0.get_all(TRACEPARENT_HEADER).iter();
        let text = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
        trace_id(text).map(|_| text)
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT_HEADER]
    }
}
