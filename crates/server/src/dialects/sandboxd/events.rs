//! What happens, as server-sent events: stored ones first, then live, without a gap.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::extract::State;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::HeaderMap;
use sandbank_orchestrator::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, is_bound, is_hidden};
use crate::limits::HEARTBEAT;
use crate::streams::StreamPermit;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventQuery {
    /// Only events numbered above this one; the header `Last-Event-ID` wins over it.
    after: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
pub(super) struct EventView<'a> {
    seq: u64,
    /// Unix time in milliseconds.
    time_ms: u64,
    sandbox_id: Option<&'a str>,
    /// `sandbox.created`, `port.published`, …
    kind: &'a str,
    #[schema(value_type = Object)]
    detail: &'a Value,
}

/// Every event, with its number as `id`, its kind as `event` and the whole of it as `data`.
#[utoipa::path(get, path = "/v1/events", tag = "daemon",
    params(EventQuery, ("last-event-id" = Option<u64>, Header)),
    responses((status = 200, body = EventView<'static>, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let permit = app.streams().open()?;
    let after = last_event_id(&headers)?.or(query.after).unwrap_or(0);
    let (stored, live) = app.orchestrator().events(after).await?;
    let feed = Feed { app, caller, stored: stored.into(), live, last: after, _permit: permit };
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(sse(&event)), feed))
    });
    let beat = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    Ok(Sse::new(events).keep_alive(beat).into_response())
}

pub(super) fn last_event_id(headers: &HeaderMap) -> ApiResult<Option<u64>> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        ApiError::bad_request("bad_event_id", "Last-Event-ID must be the number of an event")
    })
}

struct Feed {
    app: App,
    /// Who reads it.
    caller: Caller,
    stored: VecDeque<Event>,
    live: Receiver<Event>,
    last: u64,
    _permit: StreamPermit,
}

impl Feed {
    /// None when the daemon is on its way out, or whose an event is cannot be told.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.stored.pop_front() {
                if event.seq <= self.last {
                    continue;
                }
                self.last = event.seq;
                if self.is_hidden(&event).await.ok()? {
                    continue;
                }
                return Some(event);
            }
            let received = tokio::select! {
                received = self.live.recv() => received,
                () = self.app.shutdown().draining() => return None,
            };
            match received {
                Ok(event) => self.stored.push_back(event),
                // A slow reader: the store has what the channel no longer holds.
                Err(RecvError::Lagged(_)) => {
                    let (stored, live) = self.app.orchestrator().events(self.last).await.ok()?;
                    (self.stored, self.live) = (stored.into(), live);
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Where nobody knows any more whose a sandbox was, it may be one that is not for everybody.
    async fn is_hidden(&self, event: &Event) -> ApiResult<bool> {
        match &event.sandbox {
            Some(id) if is_bound(&self.app, &self.caller) => {
                let key = self.app.orchestrator().key_of(id).await?;
                Ok(key.is_none_or(|key| is_hidden(&self.app, &self.caller, &key)))
            }
            _ => Ok(false),
        }
    }
}

fn sse(event: &Event) -> SseEvent {
    let view = EventView {
        seq: event.seq,
        time_ms: event.time_ms,
        sandbox_id: event.sandbox.as_ref().map(|id| id.as_str()),
        kind: &event.kind,
        detail: &event.detail,
    };
    let data = serde_json::to_string(&view).expect("plain data");
    let kind = event.kind.replace(['\r', '\n'], " ");
    SseEvent::default().id(event.seq.to_string()).event(kind).data(data)
}
