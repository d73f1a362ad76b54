//! What a command's terminal shows.

use axum::extract::State;
use sandbank_protocol::Screen;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::CommandPath;
use crate::reply::Reply;
use crate::terminal::screen_error;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Screen)]
pub(super) struct ScreenView {
    /// Number of the last output that the screen shows: `logs?after=` this goes on from there.
    seq: u64,
    rows: u16,
    cols: u16,
    title: String,
    /// The screen of full-screen programs is shown.
    alternate: bool,
    cursor: CursorView,
    /// Written to a fresh terminal of this size it shows the screen: text, colours, cursor, modes.
    repaint_base64: String,
}

/// Counted from 0.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScreenCursor)]
struct CursorView {
    row: u16,
    col: u16,
    visible: bool,
}

impl From<Screen> for ScreenView {
    fn from(screen: Screen) -> Self {
        let Screen { seq, rows, cols, title, alternate, cursor, repaint } = screen;
        let (row, col, visible) = (cursor.row, cursor.col, cursor.visible);
        let cursor = CursorView { row, col, visible };
        Self { seq, rows, cols, title, alternate, cursor, repaint_base64: repaint }
    }
}

/// The screen of a command that was started with a `pty` and `"screen":true`.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{commandId}/screen", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path)),
    responses((status = 200, body = ScreenView), (status = "default", body = ErrorBody)))]
pub(super) async fn screen(
    State(app): State<App>,
    path: CommandPath,
) -> ApiResult<Reply<ScreenView>> {
    let attached = app.orchestrator().attach(&path.sandbox).await?;
    let command = &path.command;
    let screen = attached.run(|client| async move { client.screen(command).await }).await;
    Ok(Reply(screen.map_err(screen_error)?.screen.into()))
}
