//! What happens to files, as server-sent events or over a WebSocket.

use std::convert::Infallible;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, header};
use sandbank_channel::WatchQuery as Wanted;
use sandbank_protocol::{WatchEvent, WatchKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::events::last_event_id;
use super::watch_feed::WatchFeed;
use super::{path_rule, watch_socket};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath};
use crate::limits::HEARTBEAT;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WatchQuery {
    /// A directory; the whole workspace where it is absent.
    #[serde(default)]
    path: String,
    /// Directories in it, too.
    #[serde(default = "yes")]
    recursive: bool,
    /// Only changes numbered above this one; the header `Last-Event-ID` wins over it.
    after: Option<u64>,
    /// Names of directories that are not entered, as `a,b/c`; `.git/objects,node_modules` where it
    /// is absent.
    exclude: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WatchEvent)]
pub(super) struct WatchEventView<'a> {
    seq: u64,
    /// `ready` (every change from now on is told), `created`, `modified`, `removed`, `moved` (with
    /// everything below it), `reset` (changes may be missing: list again) or `end`.
    #[schema(value_type = String)]
    kind: WatchKind,
    /// From the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    /// The exact bytes where the path is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<&'a str>,
    /// Where a moved one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_hex: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_dir: Option<bool>,
    /// Of `reset` and `end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// As JSON.
pub(super) fn text(event: &WatchEvent) -> String {
    let view = WatchEventView {
        seq: event.seq,
        kind: event.kind,
        path: event.path.as_deref(),
        path_hex: event.path_hex.as_deref(),
        from: event.from.as_deref(),
        from_hex: event.from_hex.as_deref(),
        is_dir: event.is_dir,
        reason: event.reason.as_deref(),
    };
    serde_json::to_string(&view).expect("plain data")
}

/// Changes below a directory: as server-sent events, each with its number as `id`, its kind as
/// `event` and the whole of it as `data`; or, where the request asks for an upgrade, as text
/// messages of a WebSocket. Changes of the last minutes are kept: who comes back with the last
/// number goes on without a gap, or is told by `reset` to list again. The WebSocket is closed with
/// 1000 after `end`, 1001 when the daemon stops, 1011 when the sandbox does not answer, and 1013
/// when messages are not taken for 10 seconds; after the last three, come back with `after`.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files:watch", tag = "files",
    params(("id" = String, Path), WatchQuery, ("last-event-id" = Option<u64>, Header)),
    responses((status = 200, body = WatchEventView<'static>, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn watch(
    State(app): State<App>,
    caller: Caller,
    SandboxPath(id): SandboxPath,
    Query(query): Query<WatchQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let WatchQuery { path, recursive, after, exclude } = query;
    let path = if path.is_empty() { ".".to_owned() } else { path_rule::any(&path)?.to_owned() };
    let after = last_event_id(&headers)?.or(after);
    let wanted = Wanted { path, recursive, after, exclude };
    if !headers.contains_key(header::UPGRADE) {
        return Ok(sse(WatchFeed::open(app, id, wanted).await?));
    }
    let upgrade = upgrade.map_err(|rejection| {
        ApiError::bad_request("bad_upgrade", rejection.body_text())
            .with_hint("ask for a WebSocket, or leave out `Upgrade` for server-sent events")
    })?;
    let feed = WatchFeed::open(app, id, wanted).await?;
    Ok(watch_socket::serve(upgrade, feed, caller))
}

fn sse(feed: WatchFeed) -> Response {
    // A stream that just ends is asked for again, from the last number on.
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await.ok()?;
        let kind = serde_json::to_value(event.kind).expect("plain data");
        let kind = kind.as_str().unwrap_or_default().to_owned();
        let told = SseEvent::default().id(event.seq.to_string()).event(kind).data(text(&event));
        Some((Ok::<_, Infallible>(told), feed))
    });
    let beat = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    Sse::new(events).keep_alive(beat).into_response()
}
