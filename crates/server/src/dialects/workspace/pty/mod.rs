//! `/ws/pty`: a terminal in the workspace, and everybody who looks at it and types.
//!
//! What runs is one of the server's own templates. It is a command of the workspace's runner, so
//! whoever is cut off comes back to the same program; the runner's model of the screen is what they
//! are shown first.

mod begin;
mod characters;
mod frames;
mod history;
mod refused;
mod template;

use std::convert::Infallible;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;

use self::begin::Begun;
use super::error::Detail;
use super::place::Place;
use super::query::Parameters;
use super::sessions::{Live, end};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::limits::MAX_VIEWER_MESSAGE_BYTES;
use crate::request::{Carried, RequestId};
use crate::terminal::viewer::view;

pub(super) use refused::{NOT_KNOWN, TIMED_OUT};
pub(super) use template::PROVIDERS;

/// Look at a terminal and type: a new one, or one that is there.
///
/// Query: `provider` (`shell` or `claude`), `session_id` (a UUID of the client's own, or what an
/// earlier connection was told), `resume=1` (it must be there), `force_new=1`, and `after`, which is
/// not the original's: who says the `seq` of the last `output` it saw (0 at first) is told numbers,
/// and is sent every byte that follows instead of `history`. Text frames of JSON. To the server:
/// `input` with `data`, `resize` with `rows` and `cols`, `ping`; what is no JSON object is input.
/// From the server: `session`, `history`, `output`, `pong`, `exit` (the connection stays), `error`,
/// `session_not_found`. Closed with 1011 when nothing could be started, 1012 when the server goes,
/// 4001 after `session_not_found`, 4003 for an unknown provider, 4004 for input that makes no sense,
/// 4005 for too many sessions, connections or too much input, 4006 when the workspace is not to be
/// had, at first or any more, 4007 when the client takes nothing or does not answer, or the workspace
/// answers too late, 4008 when its token is revoked.
#[utoipa::path(get, path = "/ws/pty", tag = "workspace_sessions",
    responses((status = 101), (status = "default", body = Detail)))]
pub(super) async fn join(
    State(app): State<App>,
    caller: Caller,
    Extension(request_id): Extension<RequestId>,
    query: Parameters,
    upgrade: WebSocketUpgrade,
) -> ApiResult<Response> {
    Place::check(&app)?;
    let upgrade = upgrade.max_message_size(MAX_VIEWER_MESSAGE_BYTES);
    let upgrade = upgrade.max_frame_size(MAX_VIEWER_MESSAGE_BYTES);
    let carried = Carried::now();
    let held = |socket| async move { hold(app, socket, &caller, &query, &request_id).await };
    Ok(upgrade.on_upgrade(move |socket| carried.over(Box::pin(held(socket)))))
}

async fn hold(
    app: App,
    socket: WebSocket,
    caller: &Caller,
    query: &Parameters,
    request_id: &RequestId,
) {
    // On the heap: what begins a terminal is large, and over long before the terminal is.
    let begun = match Box::pin(begin::begin(&app, caller, query, request_id)).await {
        Ok(begun) => begun,
        Err(refused) => {
            app.workspace_measured().attach_failed("pty");
            return refused.tell(socket, request_id).await;
        }
    };
    let Begun { session, terminal, frames } = begun;
    let (user, live) = (&*caller.name, session.live.clone());
    tracing::info!(user, session = %live.name.id, "a terminal was attached to");
    let hands = terminal.hands(user);
    let parting = tokio::select! {
        parting = Box::pin(view(socket, terminal, hands, frames, caller)) => parting,
        never = rest(&app, &live) => match never {},
    };
    if parting.is_sudden() {
        app.workspace_measured().disconnected("pty");
    }
    tracing::info!(user, session = %live.name.id, "a terminal was left");
}

/// Ends a terminal that does nothing; who looks at it is told so by its ending.
async fn rest(app: &App, live: &Live) -> Infallible {
    let Some(longest) = app.settings().workspace.pty_idle else {
        return std::future::pending().await;
    };
    loop {
        match longest.checked_sub(live.quiet()).filter(|left| !left.is_zero()) {
            Some(left) => tokio::time::sleep(left).await,
            None => {
                let _ = end(app, live, "it did nothing").await;
                return std::future::pending().await;
            }
        }
    }
}
