//! What every route of the runner answers with: the body type, JSON answers and refusals.
//!
//! Knows HTTP and the protocol's fault shape, nothing of commands or files.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Response, StatusCode, header};
use sandbank_protocol::{Fault, FaultCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::MAX_JSON_BYTES;

pub(crate) type RunnerBody = UnsyncBoxBody<Bytes, io::Error>;

/// What is open right now; read by `GET /stats`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) tunnels_open: Cell<u64>,
    pub(crate) readers_open: Cell<u64>,
}

/// Counts one tunnel or reader for as long as it lives.
#[derive(Debug)]
pub(crate) struct Open {
    counters: Rc<Counters>,
    cell: fn(&Counters) -> &Cell<u64>,
}

impl Open {
    pub(crate) fn tunnel(counters: &Rc<Counters>) -> Self {
        Self::count(counters, |counters| &counters.tunnels_open)
    }

    pub(crate) fn reader(counters: &Rc<Counters>) -> Self {
        Self::count(counters, |counters| &counters.readers_open)
    }

    fn count(counters: &Rc<Counters>, cell: fn(&Counters) -> &Cell<u64>) -> Self {
        let open = Self { counters: counters.clone(), cell };
        cell(&open.counters).set(cell(&open.counters).get() + 1);
        open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let cell = (self.cell)(&self.counters);
        cell.set(cell.get().saturating_sub(1));
    }
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> RunnerBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn empty() -> RunnerBody {
    full(Bytes::new())
}

pub(crate) fn json(value: &impl Serialize) -> Response<RunnerBody> {
    with_json(StatusCode::OK, value)
}

pub(crate) fn no_content() -> Response<RunnerBody> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub(crate) fn fault(fault: &Fault) -> Response<RunnerBody> {
    let status = StatusCode::from_u16(fault.code.status());
    with_json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), fault)
}

fn with_json(status: StatusCode, value: &impl Serialize) -> Response<RunnerBody> {
    let body = serde_json::to_vec(value).expect("protocol types are plain data");
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Reads a JSON request body of at most [`MAX_JSON_BYTES`].
pub(crate) async fn read_json<T: DeserializeOwned>(body: Incoming) -> Result<T, Fault> {
    let collected = Limited::new(body, MAX_JSON_BYTES).collect().await;
    let bytes = collected
        .map_err(|error| {
            Fault::new(FaultCode::Invalid, format!("the request body cannot be read: {error}"))
        })?
        .to_bytes();
    serde_json::from_slice(&bytes).map_err(|error| {
        Fault::new(FaultCode::Invalid, format!("the request body is not understood: {error}"))
    })
}

/// The text behind `name=` in the query, as it stands there.
pub(crate) fn query_value<'a>(uri: &'a hyper::Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find_map(|(key, value)| (key == name).then_some(value))
}

pub(crate) fn no_route(method: &hyper::Method, path: &str) -> Fault {
    Fault::new(FaultCode::NotFound, format!("there is no {method} {path:.100}"))
}
