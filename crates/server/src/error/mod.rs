//! The one error of the API: a stable code, a sentence, what to do next.
//!
//! Handlers return it; the outermost layer (`request.rs`) writes it as JSON, because only there
//! the request's id is known. Nothing else makes an error body.

mod from;

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;

pub(crate) type ApiResult<T> = Result<T, ApiError>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) retryable: bool,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) details: Option<Value>,
}

/// An error on the wire.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error)]
pub(crate) struct ErrorBody<'a> {
    /// A sentence for people.
    pub(crate) error: &'a str,
    /// Stable; test this one.
    pub(crate) code: &'a str,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<&'a str>,
    /// Whether the same request may succeed later, unchanged.
    pub(crate) retryable: bool,
    /// Also in the `x-request-id` header and in the daemon's log.
    pub(crate) request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) details: Option<&'a Value>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: None,
            retryable: false,
            retry_after: None,
            details: None,
        }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// sandboxd's text, whatever it is that is not there.
    pub(crate) fn not_found(code: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, "Not found")
    }

    pub(crate) fn sandbox_not_found() -> Self {
        Self::not_found("sandbox_not_found")
            .with_hint("`sandbank ps` or GET /v1/sandboxes lists the ones there are")
    }

    pub(crate) fn route_not_found() -> Self {
        Self::not_found("route_not_found")
            .with_hint("GET /openapi.json describes every path and method")
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized").with_hint(
            "send the token from the data directory's `token` file as `Authorization: Bearer <token>`",
        )
    }

    /// A bug, or a part of the machine that failed; never the caller's fault.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error.")
            .with_hint("the daemon's log has the details under this request id")
    }

    /// Too busy now: 503, or 429 where it is this caller's share that is used up.
    pub(crate) fn overloaded(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        after: Duration,
    ) -> Self {
        Self { retryable: true, retry_after: Some(after), ..Self::new(status, code, message) }
    }

    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub(crate) fn with_details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    pub(crate) fn body<'a>(&'a self, request_id: &'a str) -> ErrorBody<'a> {
        ErrorBody {
            error: &self.message,
            code: self.code,
            hint: self.hint.as_deref(),
            retryable: self.retryable,
            request_id,
            details: self.details.as_ref(),
        }
    }

    /// The finished answer.
    pub(crate) fn render(&self, request_id: &str) -> Response {
        self.answer(&self.body(request_id))
    }

    /// The same with a dialect's own body.
    pub(crate) fn answer(&self, body: &impl Serialize) -> Response {
        let body = serde_json::to_vec(body).expect("plain data");
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, crate::reply::JSON);
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Unfinished: the error travels as an extension until the request's id is known.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        let after = Duration::from_millis(1200);
        let error = ApiError::overloaded(StatusCode::TOO_MANY_REQUESTS, "x", "x", after);
        assert_eq!(error.render("r").headers()[header::RETRY_AFTER], "2");
    }

    #[test]
    fn the_body_is_a_superset_of_sandboxds() {
        let error = ApiError::not_found("sandbox_not_found");
        let json = serde_json::to_value(error.body("r1")).unwrap();
        assert_eq!(json["error"], "Not found");
        assert_eq!(json["requestId"], "r1");
        assert!(json.get("hint").is_none());
    }
}
