//! Bodies that are read whole: bounded in size, and in how long they may pause.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::{StatusCode, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::unique_keys::UniqueKeys;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::fields;
use crate::limits::MAX_BODY_TIME;

/// The body as it came.
pub(crate) struct Whole(pub(crate) Bytes);

/// A JSON object as sandboxd reads one: an empty body and anything but an object are `{}`.
/// Only a key that stands twice is refused.
pub(crate) struct Loose(pub(crate) Map<String, Value>);

/// A JSON object of exactly this type, for our own routes. An empty body is `{}`.
pub(crate) struct Strict<T>(pub(crate) T);

/// A JSON object of this type, each of whose keys stands once, also those that it does not know. An
/// empty body is `{}`.
pub(crate) struct Once<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Once<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Whole(bytes) = Whole::from_request(request, app).await?;
        let text = if bytes.is_empty() { b"{}" } else { &*bytes };
        let UniqueKeys(value) = serde_json::from_slice(text).map_err(|error| bad_json(&error))?;
        if !value.is_object() {
            return Err(ApiError::bad_request("bad_body", "the request body must be an object"));
        }
        serde_json::from_value(value).map(Self).map_err(|error| bad_json(&error))
    }
}

impl FromRequest<App> for Whole {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let limits = &app.settings().server;
        read_in_time(request, limits.max_body_bytes, limits.body_timeout).await.map(Self)
    }
}

/// A body with a limit of its own.
pub(crate) async fn read_whole(request: Request, app: &App, limit: usize) -> ApiResult<Bytes> {
    read_in_time(request, limit, app.settings().server.body_timeout).await
}

impl FromRequest<App> for Loose {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Whole(bytes) = Whole::from_request(request, app).await?;
        loose(&bytes).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<App> for Strict<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Whole(bytes) = Whole::from_request(request, app).await?;
        let text = if bytes.is_empty() { b"{}" } else { &*bytes };
        serde_json::from_slice(text).map(Self).map_err(|error| bad_json(&error))
    }
}

pub(crate) fn bad_json(error: &serde_json::Error) -> ApiError {
    if let Some(about_a_field) = fields::from_serde(&error.to_string()) {
        return ApiError::bad_request("bad_body", about_a_field);
    }
    let code = if error.is_data() { "bad_body" } else { "bad_json" };
    ApiError::bad_request(code, format!("the request body is not usable: {error}"))
}

pub(super) fn loose(bytes: &[u8]) -> ApiResult<Map<String, Value>> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(bytes) {
        Ok(UniqueKeys(Value::Object(map))) => Ok(map),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(bad_json(&error)),
    }
}

async fn read_in_time(request: Request, limit: usize, pause: Duration) -> ApiResult<Bytes> {
    let whole = read(request, limit, pause);
    tokio::time::timeout(MAX_BODY_TIME, whole).await.unwrap_or_else(|_| Err(dripping()))
}

async fn read(request: Request, limit: usize, pause: Duration) -> ApiResult<Bytes> {
    let stated = request.headers().get(header::CONTENT_LENGTH);
    let stated = stated.and_then(|value| value.to_str().ok()?.parse::<usize>().ok()).unwrap_or(0);
    let mut body = request.into_body();
    if stated > limit {
        return Err(too_large(limit));
    }
    let mut bytes = BytesMut::with_capacity(stated);
    while let Some(data) = next(&mut body, pause).await? {
        if bytes.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

async fn next(body: &mut Body, pause: Duration) -> ApiResult<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout(pause, body.frame()).await.map_err(|_| stalled(pause))?;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let message = format!("the request body broke off: {error}");
                return Err(ApiError::bad_request("body_incomplete", message));
            }
        }
    }
}

pub(super) fn stalled(pause: Duration) -> ApiError {
    let message = format!("the request body paused for more than {pause:?}");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
}

fn dripping() -> ApiError {
    let message = format!("the request body took more than {MAX_BODY_TIME:?}");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "Request body too large.")
        .with_hint(format!(
            "JSON bodies have at most {limit} bytes; send large files with PUT …/files?path="
        ))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[test]
    fn sandboxds_reading_of_bodies() {
        for empty in ["", "  \n", "[]", "1", "null", "\"x\""] {
            assert!(loose(empty.as_bytes()).unwrap().is_empty(), "{empty:?}");
        }
        assert_eq!(loose(b"{\"a\":1}").unwrap()["a"], 1);
    }

    #[test]
    fn hostile_json_is_the_callers_error() {
        let deep = "[".repeat(100_000);
        for bad in ["{", "\u{feff}{}", "{\"a\":1e999}", "{}{}", &deep, "{\"a\":\u{1}}"] {
            let error = loose(bad.as_bytes()).unwrap_err();
            assert_eq!(error.status, StatusCode::BAD_REQUEST);
        }
        assert_eq!(loose(b"{\"a\":\"\xff\"}").unwrap_err().status, StatusCode::BAD_REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up() {
        let drops = futures_util::stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, std::io::Error>(" ")
        });
        let request = Request::new(Body::from_stream(drops));
        let error = read_in_time(request, 1 << 20, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!((error.status, error.code), (StatusCode::REQUEST_TIMEOUT, "body_too_slow"));
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_too_large_however_it_is_stated() {
        let request = |body: &'static str| Request::new(Body::from(body));
        let limit = |request| read(request, 4, Duration::from_secs(5));
        assert_eq!(limit(request("1234")).await.unwrap(), "1234");
        let error = limit(request("12345")).await.unwrap_err();
        assert_eq!((error.status, error.code), (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"));
        let mut stated = request("1");
        stated.headers_mut().insert(header::CONTENT_LENGTH, 5.into());
        assert_eq!(limit(stated).await.unwrap_err().code, "body_too_large");
    }
}
