//! The answer to one request: is it known, is it right, and then the runner's.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use sandbank_channel::{ChannelBody, current_request_id, full_body, trace, with_request_id};
use serde_json::json;
use sha2::{Digest, Sha256};
use tracing::{Instrument, Span};

use super::Service;
use super::connection::{Activity, Running};
use super::refusal::{CLOCK_HEADER, Refusal, json_answer};
use crate::limits::{BODY_PATIENCE, MAX_BODY_BYTES, MAX_SKEW_SECONDS};
use crate::replay::Used;
use crate::request_id::{self, REQUEST_ID_HEADER};
use crate::signature::{BadSignature, Signed, check, only, unix_seconds};
use crate::version::{API_VERSION, ApiVersion, COMPATIBLE_FROM, VERSION_HEADER};
use crate::{PlaceState, routes};

/// To everybody without a right signature, whatever is wrong with it.
const FORBIDDEN: &str = "Forbidden: invalid internal credentials";

/// Of one connection, which says nothing about the next.
const HOP_BY_HOP: [HeaderName; 5] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TE, header::TRAILER];

impl Service {
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        activity: &Arc<Activity>,
    ) -> Response<ChannelBody> {
        let began = Instant::now();
        let running = Running::new(activity);
        let id = request_id::accepted(only(request.headers(), REQUEST_ID_HEADER));
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let span = trace_span(&request, &id);
        let routed = with_request_id(id.as_str().into(), self.route(request, activity));
        let mut response = match routed.instrument(span.clone()).await {
            Ok(response) => response,
            Err(Refused { refusal, detail, behind }) => {
                tracing::warn!(request_id = id, %peer, refusal = refusal.name(), detail, "refused");
                let mut response = refusal.answer(&detail);
                if let Some(behind) = behind {
                    response.headers_mut().insert(CLOCK_HEADER, behind.into());
                }
                response
            }
        };
        let version = HeaderValue::try_from(API_VERSION.to_string()).expect("digits and dots");
        response.headers_mut().insert(VERSION_HEADER, version);
        let shown = HeaderValue::try_from(id.as_str()).expect("letters and digits");
        response.headers_mut().insert(REQUEST_ID_HEADER, shown);
        let (status, took) = (response.status().as_u16(), began.elapsed().as_millis());
        trace::finish(&span, status);
        // Queries hold paths of the workspace; the first part of a path says enough.
        tracing::info!(request_id = id, %peer, %method, path = %path.chars().take(80).collect::<String>(), status, ms = took as u64, "answered");
        response.map(|body| Counted { body, _running: running }.boxed_unsync())
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        activity: &Arc<Activity>,
    ) -> Result<Response<ChannelBody>, Refused> {
        let is_get = request.method() == Method::GET || request.method() == Method::HEAD;
        match request.uri().path() {
            "/healthz" if is_get => return Ok(self.health().await),
            "/__meta/version" if is_get => return Ok(version()),
            _ => {}
        }
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("", |path| path.as_str()).to_owned();
        let signed = self.admit(&head.method, &target, &head.headers)?;
        activity.known.store(true, Ordering::Release);
        let body = self.gather(body, &signed).await?;
        // Only when all of it is right: a request whose body was cut may come again as it is.
        self.take_once(&head.method, &signed)?;
        self.hand_on(head.method, &target, body).await
    }

    /// By the head alone.
    fn admit(&self, method: &Method, target: &str, headers: &HeaderMap) -> Result<Signed, Refused> {
        let checked = check(&self.keys.current(), method, target, headers, unix_seconds());
        let signed = checked.map_err(|bad| match bad {
            // Which routes there are is no secret, so this tells nobody more than the other.
            BadSignature::Wrong if !routes::is_allowed(method, target) => {
                Refused::new(Refusal::Path, FORBIDDEN)
            }
            BadSignature::Wrong => Refused::new(Refusal::Auth, FORBIDDEN),
            BadSignature::Clock { behind } => Refused {
                behind: Some(behind),
                ..Refused::new(Refusal::Clock, clock_detail(behind))
            },
        })?;
        let version = only(headers, VERSION_HEADER).unwrap_or_default();
        if !version.parse::<ApiVersion>().is_ok_and(ApiVersion::is_compatible) {
            let detail = format!(
                "this service speaks {API_VERSION} and gets on with {COMPATIBLE_FROM} and later of \
                 the same major version"
            );
            return Err(Refused::new(Refusal::Version, detail));
        }
        if !routes::is_allowed(method, target) {
            return Err(Refused::new(Refusal::Route, "there is no such route"));
        }
        Ok(signed)
    }

    fn take_once(&self, method: &Method, signed: &Signed) -> Result<(), Refused> {
        if !routes::changes(method) {
            return Ok(());
        }
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.take(unix_seconds(), signed.at, signed.nonce).map_err(|used| {
            let detail = match used {
                Used::Before => "Forbidden: this request was made before",
                Used::Unknown => "Forbidden: this was signed before this service began to listen",
            };
            Refused::new(Refusal::Stale, detail)
        })
    }

    /// All of the body, if it is what was signed.
    async fn gather(&self, body: Incoming, signed: &Signed) -> Result<Bytes, Refused> {
        if body.is_end_stream() {
            return self.right(Bytes::new(), signed);
        }
        let most = body.size_hint().upper().unwrap_or(MAX_BODY_BYTES as u64);
        if most > MAX_BODY_BYTES as u64 {
            return Err(too_large());
        }
        let room = self.gathering.clone().acquire_many_owned(most.max(1) as u32);
        let gathered = tokio::time::timeout(BODY_PATIENCE, async {
            let room = room.await;
            let collected = Limited::new(body, MAX_BODY_BYTES).collect().await;
            drop(room);
            collected
        });
        match gathered.await {
            Ok(Ok(collected)) => self.right(collected.to_bytes(), signed),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(Refused::new(Refusal::Body, "the body was cut")),
            Err(_) => Err(Refused::new(Refusal::Body, "the body took too long")),
        }
    }

    fn right(&self, body: Bytes, signed: &Signed) -> Result<Bytes, Refused> {
        if <[u8; 32]>::from(Sha256::digest(&body)) == signed.body_hash {
            return Ok(body);
        }
        Err(Refused::new(Refusal::Auth, FORBIDDEN))
    }

    async fn hand_on(
        &self,
        method: Method,
        target: &str,
        body: Bytes,
    ) -> Result<Response<ChannelBody>, Refused> {
        let held = self.place.client().await.map_err(|error| {
            let request_id = current_request_id();
            tracing::error!(request_id = request_id.as_deref(), %error, "the workspace's runner cannot be reached");
            Refused::new(Refusal::Unavailable, "the workspace's runner cannot be reached")
        })?;
        let relayed = held.relay(method, target, full_body(body)).await.map_err(|error| {
            let request_id = current_request_id();
            tracing::error!(request_id = request_id.as_deref(), %error, "the workspace's runner was lost");
            Refused::new(Refusal::Failed, "the workspace's runner was lost")
        })?;
        let mut response = relayed.map(|body| body.map_err(std::io::Error::other).boxed_unsync());
        for name in HOP_BY_HOP {
            response.headers_mut().remove(name);
        }
        Ok(response)
    }

    async fn health(&self) -> Response<ChannelBody> {
        let version = API_VERSION.to_string();
        match self.place.health().await.state {
            PlaceState::Healthy => {
                json_answer(StatusCode::OK, &json!({ "status": "ok", "version": version }))
            }
            PlaceState::Unhealthy => {
                let body = json!({ "status": "degraded", "version": version });
                json_answer(StatusCode::SERVICE_UNAVAILABLE, &body)
            }
        }
    }
}

/// A part of the trace that the caller's headers name; the signature is not known to be right yet,
/// so a stranger, too, is seen.
fn trace_span(request: &Request<Incoming>, id: &str) -> Span {
    if !trace::is_on() {
        return Span::none();
    }
    let route = trace::template(request.uri().path());
    let route = if routes::is_allowed(request.method(), &route) { &*route } else { "other" };
    trace::serving(request.method(), route, id, request.headers())
}

struct Refused {
    refusal: Refusal,
    detail: String,
    behind: Option<i64>,
}

impl Refused {
    fn new(refusal: Refusal, detail: impl Into<String>) -> Self {
        Self { refusal, detail: detail.into(), behind: None }
    }
}

fn too_large() -> Refused {
    Refused::new(Refusal::TooLarge, format!("a request carries at most {MAX_BODY_BYTES} bytes"))
}

fn clock_detail(behind: i64) -> String {
    let way = if behind >= 0 { "behind" } else { "ahead of" };
    format!(
        "Forbidden: the caller's clock is {} s {way} this machine's, at most {MAX_SKEW_SECONDS} s are \
         allowed",
        behind.unsigned_abs()
    )
}

fn version() -> Response<ChannelBody> {
    let body = json!({
        "version": API_VERSION.to_string(),
        "compatible_from": COMPATIBLE_FROM.to_string(),
    });
    json_answer(StatusCode::OK, &body)
}

/// A body that counts as a running request until it has been sent.
struct Counted {
    body: ChannelBody,
    _running: Running,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
