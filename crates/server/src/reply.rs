//! JSON answers, with the content type that sandboxd's clients see.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde::Serialize;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
pub(crate) const NDJSON: HeaderValue =
    HeaderValue::from_static("application/x-ndjson; charset=utf-8");

/// 200 with `T` as JSON.
pub(crate) struct Reply<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).expect("wire types are plain data");
        ([(header::CONTENT_TYPE, JSON)], body).into_response()
    }
}

/// `{"ok":true}`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Done {
    ok: bool,
}

impl Done {
    pub(crate) fn reply() -> Reply<Self> {
        Reply(Self { ok: true })
    }
}
