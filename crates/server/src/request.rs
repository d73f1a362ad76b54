//! The outermost layer: every request gets an id, every panic an answer, every error its body,
//! and the log one line, without paths, queries, headers or bodies a secret could be in.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use sandbank_channel::{current_request_id, trace, with_request_id};
use sandbank_protocol::{REQUEST_ID_HEADER, plain_request_id};
use tracing::{Instrument, Span};

use crate::dialects::{Dialect, mark_tools};
use crate::error::ApiError;

const REQUEST_ID: HeaderName = HeaderName::from_static(REQUEST_ID_HEADER);

/// For handlers that tell it in frames of their own.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// The middleware.
pub(crate) async fn identify(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let method = request.method().clone();
    let dialect = Dialect::of(request.uri().path());
    let tells_of_tools = Dialect::tells_of_tools(request.uri().path());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let begin = Instant::now();
    let name = route.as_ref().map_or("none", MatchedPath::as_str);
    let traced = trace::serving(&method, name, &id, request.headers());
    let span = tracing::info_span!("request", request_id = %id);
    let run = AssertUnwindSafe(next.run(request)).catch_unwind();
    let carried = Carried { id: id.clone(), span: span.clone(), traced: traced.clone() };
    let mut response = carried.over(run).await.unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        span.in_scope(|| tracing::error!(panic = text, "a handler panicked"));
        ApiError::internal().into_response()
    });
    finish(&mut response, &id, dialect);
    if tells_of_tools {
        mark_tools(response.headers_mut());
    }
    trace::finish(&traced, response.status().as_u16());
    span.in_scope(|| log(&method, name, response.status(), begin));
    response
}

tokio::task_local! {
    /// The span that is exported; the log's own is the current one.
    static TRACED: Span;
}

/// What goes on after the answer, as a WebSocket does, or in a task of its own still belongs to its
/// request: the log and other machines are told the same id and the same trace.
pub(crate) struct Carried {
    id: Arc<str>,
    span: Span,
    traced: Span,
}

impl Carried {
    /// From the handler's own task.
    pub(crate) fn now() -> Self {
        let id = current_request_id().unwrap_or_else(|| random_id().into());
        let traced = TRACED.try_with(Span::clone).unwrap_or_else(|_| Span::none());
        Self { id, span: Span::current(), traced }
    }

    /// Large work is given in a box: it is moved through several hands, each on the stack.
    pub(crate) async fn over<F: Future>(self, work: F) -> F::Output {
        let known = with_request_id(self.id, work).instrument(self.span);
        TRACED.scope(self.traced.clone(), known).instrument(self.traced).await
    }
}

fn finish(response: &mut Response, id: &str, dialect: Dialect) {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let earlier = std::mem::take(response.headers_mut());
        *response = dialect.render(&error, id);
        for (name, value) in &earlier {
            response.headers_mut().entry(name).or_insert(value.clone());
        }
    }
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, HeaderValue::from_str(id).expect("ids are plain characters"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn log(method: &Method, route: &str, status: StatusCode, begin: Instant) {
    let elapsed_us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
    let status = status.as_u16();
    if status >= 500 {
        tracing::warn!(%method, route, status, elapsed_us, "answered");
    } else {
        tracing::debug!(%method, route, status, elapsed_us, "answered");
    }
}

/// The client's own id where it is short and plain, else a random one.
fn request_id(headers: &HeaderMap) -> Arc<str> {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    given.and_then(plain_request_id).map_or_else(|| random_id().into(), Arc::from)
}

pub(crate) fn random_id() -> String {
    let mut bytes = [0u8; 15];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    URL_SAFE_NO_PAD.encode(bytes)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use axum::middleware::from_fn;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    #[test]
    fn odd_request_ids_are_replaced() {
        let id = |text: &[u8]| {
            let value = HeaderValue::from_bytes(text).unwrap();
            request_id(&[(REQUEST_ID, value)].into_iter().collect())
        };
        assert_eq!(&*id(b"abc-1.2_3"), "abc-1.2_3");
        for odd in [&b""[..], b"a b", b"a\tb", b"\xff", &[b'x'; 65], b"\"quoted\""] {
            assert_ne!(id(odd).as_bytes(), odd);
        }
        assert_eq!(request_id(&HeaderMap::new()).len(), 20);
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_with_an_id_and_without_its_text() {
        let boom = || async {
            if true {
                panic!("secret detail")
            }
        };
        let router: axum::Router =
            axum::Router::new().route("/", axum::routing::get(boom)).layer(from_fn(identify));
        let request = Request::builder().uri("/").header(REQUEST_ID, "r7");
        let request = request.body(axum::body::Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[REQUEST_ID], "r7");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["code"], &body["requestId"]), (&"internal".into(), &"r7".into()));
        assert!(!body.to_string().contains("secret"), "{body}");
    }
}
