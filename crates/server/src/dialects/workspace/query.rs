//! Parameters as the original's framework checks them: what is missing or too short is a 422 that
//! says where.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde_json::json;

use super::error::unprocessable;
use crate::app::App;
use crate::error::{ApiError, ApiResult};

/// The query string; of a parameter that stands twice the last counts.
pub(super) struct Parameters(Vec<(String, String)>);

impl FromRequestParts<App> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(pairs)) => Ok(Self(pairs)),
            Err(error) => Err(ApiError::bad_request("bad_query", error.body_text())),
        }
    }
}

impl Parameters {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let known = self.0.iter().rev().find(|(known, _)| known == name);
        known.map(|(_, value)| value.as_str())
    }

    pub(super) fn required(&self, name: &str) -> ApiResult<&str> {
        self.get(name).ok_or_else(|| {
            unprocessable(json!({
                "type": "missing", "loc": ["query", name], "msg": "Field required", "input": null,
            }))
        })
    }

    pub(super) fn not_empty(&self, name: &str) -> ApiResult<&str> {
        let value = self.required(name)?;
        if !value.is_empty() {
            return Ok(value);
        }
        Err(unprocessable(json!({
            "type": "string_too_short",
            "loc": ["query", name],
            "msg": "String should have at least 1 character",
            "input": "",
            "ctx": { "min_length": 1 },
        })))
    }

    /// The directory that a request is about.
    pub(super) fn directory(&self) -> &str {
        self.get("path").unwrap_or(".")
    }
}
