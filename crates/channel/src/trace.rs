//! A span for every call to a runner, and the headers that say on the other side whose it is.
//!
//! This crate is part of every runner, so it knows no tracing library: whoever exports spans
//! installs a [`Propagator`]. Without one nothing is made and nothing is sent.

use std::sync::OnceLock;

use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use tracing::{Instrument, Span, field};

use crate::{ChannelBody, ChannelError};

/// Of spans that are exported; lines of the log never have it.
pub const SPANS: &str = "sandbank::spans";

/// Translates between spans and headers.
pub trait Propagator: Send + Sync {
    /// Says in the headers of a call which span makes it.
    fn inject(&self, span: &Span, headers: &mut HeaderMap);

    /// Makes the span a child of the one that the headers of a request name.
    fn adopt(&self, span: &Span, headers: &HeaderMap);

    /// The span is over now, whoever still works under it.
    fn end(&self, span: &Span);
}

static PROPAGATOR: OnceLock<Box<dyn Propagator>> = OnceLock::new();

/// For the life of the process; a second one is not taken.
pub fn install(propagator: Box<dyn Propagator>) {
    let _ = PROPAGATOR.set(propagator);
}

/// Whether anybody wants spans.
pub fn is_on() -> bool {
    PROPAGATOR.get().is_some()
}

/// Of a request that is served: a part of the trace that its headers name, if they do. The route is
/// one of ours, with placeholders: neither paths nor queries nor headers are in a span, since a token
/// or a name of a file could be in them.
pub fn serving(method: &Method, route: &str, id: &str, headers: &HeaderMap) -> Span {
    let Some(propagator) = PROPAGATOR.get() else { return Span::none() };
    let method = method_name(method);
    let span = tracing::info_span!(
        target: SPANS,
        "serving",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = field::Empty,
        request_id = id,
    );
    propagator.adopt(&span, headers);
    span
}

/// A method's name; what a stranger made up is none.
fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

/// One call under way.
pub(crate) struct Call(Span);

impl Call {
    pub(crate) fn begin(request: &mut Request<ChannelBody>) -> Option<Self> {
        let propagator = PROPAGATOR.get()?;
        let (method, route) = (method_name(request.method()), route(request));
        let span = tracing::info_span!(
            target: SPANS,
            "channel",
            otel.name = format!("{method} {route}"),
            otel.kind = "client",
            otel.status_code = field::Empty,
            http.request.method = method,
            http.route = route,
            http.response.status_code = field::Empty,
        );
        if span.is_disabled() {
            return None;
        }
        propagator.inject(&span, request.headers_mut());
        Some(Self(span))
    }

    pub(crate) async fn over(
        self,
        sent: impl Future<Output = Result<Response<Incoming>, ChannelError>>,
    ) -> Result<Response<Incoming>, ChannelError> {
        let answered = sent.instrument(self.0.clone()).await;
        match &answered {
            Ok(response) => finish(&self.0, response.status().as_u16()),
            Err(_) => drop(self.0.record("otel.status_code", "ERROR")),
        }
        answered
    }
}

/// How it went; a refusal of what was asked for is no error of whoever answers.
pub fn finish(span: &Span, status: u16) {
    // Signed, or it would be exported as a text.
    span.record("http.response.status_code", i64::from(status));
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
    if let Some(propagator) = PROPAGATOR.get() {
        propagator.end(span);
    }
}

/// The path with placeholders for what is different in each call. Queries hold paths of files.
fn route(request: &Request<ChannelBody>) -> String {
    if request.method() == Method::CONNECT {
        return "tunnel".to_owned();
    }
    template(request.uri().path())
}

/// For spans of those who hand calls on, too.
pub fn template(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').skip(1).take(3).collect();
    if parts.first() == Some(&"commands") && parts.len() > 1 {
        parts[1] = "{id}";
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spans_name_has_no_ids() {
        for (path, route) in [
            ("/hello", "/hello"),
            ("/commands", "/commands"),
            ("/commands/c-1", "/commands/{id}"),
            ("/commands/c-1/output", "/commands/{id}/output"),
            ("/files/stat", "/files/stat"),
        ] {
            assert_eq!(template(path), route);
        }
    }
}
