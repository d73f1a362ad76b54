//! Which tools there are for this caller, or why there are none.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use sandbank_tools::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::admission::Asking;
use super::enabled;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::Query;
use crate::reply::Reply;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ToolsQuery {
    /// Also open the session's sandbox ahead of its first use, where there is room for it.
    #[serde(default)]
    prewarm: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolList {
    /// Also in the header `x-remcochat-bash-tools-enabled`.
    enabled: bool,
    /// Why not, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The same for programs: `tools_disabled`, `tools_switched_off`, `tools_not_for_you` or
    /// `tools_unavailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    tools: Vec<ToolView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Tool)]
pub(super) struct ToolView {
    name: &'static str,
    title: &'static str,
    /// What a model is told.
    description: String,
    /// JSON Schema of the input.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// It only looks.
    read_only: bool,
}

impl From<Tool> for ToolView {
    fn from(tool: Tool) -> Self {
        let Tool { name, title, description, input: input_schema, read_only } = tool;
        Self { name, title, description, input_schema, read_only }
    }
}

/// The tools for this caller, with their schemas; where there are none, why.
#[utoipa::path(get, path = "/api/tools", tag = "tools",
    params(ToolsQuery, ("x-sandbank-session" = Option<String>, Header)),
    responses((status = 200, body = ToolList), (status = "default", body = ErrorBody)))]
pub(super) async fn tools(
    State(app): State<App>,
    asking: Asking,
    Query(query): Query<ToolsQuery>,
) -> ApiResult<Response> {
    let list = match asking.is_admitted(&app).await {
        Ok(()) => {
            let toolbox = asking.toolbox(&app)?;
            if query.prewarm {
                app.tools().prewarm(asking.session()).map_err(|wrong| super::error::of(&wrong))?;
            }
            let tools = toolbox.tools().into_iter().map(ToolView::from).collect();
            ToolList { enabled: true, reason: None, code: None, tools }
        }
        Err(gate) => ToolList {
            enabled: false,
            reason: Some(gate.to_string()),
            code: Some(gate.code()),
            tools: Vec::new(),
        },
    };
    Ok((enabled(list.enabled), Reply(list)).into_response())
}
