//! What there is: health, features, configuration.

use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::error::{Detail, switched_off};
use super::{place, pty};
use crate::app::App;
use crate::config::WorkspaceMode;
use crate::error::ApiResult;
use crate::reply::Reply;

/// The original's own version, which its UI asks for.
const VERSION: &str = "0.1.0";

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct Features {
    files: bool,
    git: bool,
    pty: bool,
    chat_claude_code: bool,
    stream: bool,
    approval: bool,
    sandbox: bool,
}

const FEATURES: Features = Features {
    files: true,
    git: true,
    pty: true,
    chat_claude_code: true,
    stream: true,
    approval: true,
    sandbox: true,
};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkspaceHealth)]
pub(super) struct Health {
    status: &'static str,
    workspace: String,
    /// `local` or `sandbox`.
    workspace_mode: &'static str,
    features: Features,
}

/// Whether the server is there.
#[utoipa::path(get, path = "/health", tag = "workspace",
    responses((status = 200, body = Health), (status = "default", body = Detail)))]
pub(super) async fn health(State(app): State<App>) -> ApiResult<Reply<Health>> {
    let workspace_mode = mode(&app)?;
    // Nobody has shown a token: its name, and nobody is called for it.
    let workspace = place::name(&app).to_owned();
    Ok(Reply(Health { status: "ok", workspace, workspace_mode, features: FEATURES }))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkspaceCapabilities)]
pub(super) struct Capabilities {
    version: &'static str,
    features: Features,
    routers: Vec<Router>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Router {
    name: &'static str,
    prefix: &'static str,
    description: &'static str,
    tags: Vec<&'static str>,
    enabled: bool,
}

/// What the UI may show.
#[utoipa::path(get, path = "/api/capabilities", tag = "workspace",
    responses((status = 200, body = Capabilities), (status = "default", body = Detail)))]
pub(super) async fn capabilities(State(app): State<App>) -> ApiResult<Reply<Capabilities>> {
    mode(&app)?;
    let Features { files, git, pty, chat_claude_code, stream, approval, sandbox } = FEATURES;
    let router = |name, prefix, description, enabled| Router {
        name,
        prefix,
        description,
        tags: vec![name],
        enabled,
    };
    let routers = vec![
        router("files", "/api", "File system operations", files),
        router("git", "/api/git", "Git operations", git),
        router("pty", "/ws", "Terminals over WebSocket", pty),
        router("chat_claude_code", "/ws", "Chat with a CLI agent over WebSocket", chat_claude_code),
        router("stream", "/ws", "The same under its older name", stream),
        router("approval", "/api", "Approval of what an agent wants to do", approval),
        router("sandbox", "/api/sandbox", "Records of sandboxes", sandbox),
    ];
    Ok(Reply(Capabilities { version: VERSION, features: FEATURES, routers }))
}

/// How the workspace is set up.
#[utoipa::path(get, path = "/api/config", tag = "workspace",
    responses((status = 200, body = Object), (status = "default", body = Detail)))]
pub(super) async fn config(State(app): State<App>) -> ApiResult<Reply<Value>> {
    let workspace_mode = mode(&app)?;
    let mut answer = json!({
        "workspace_root": place::root(&app).await,
        "workspace_mode": workspace_mode,
        "pty_providers": pty::PROVIDERS,
        "paths": { "files": "." },
    });
    let settings = &app.settings().workspace;
    if settings.mode != WorkspaceMode::Local {
        answer["sandbox"] = json!({
            "enabled": true,
            "multi_tenant": settings.multi_tenant,
            "routing_mode": "single",
            "auth_identity_binding": settings.identity_binding,
        });
    }
    Ok(Reply(answer))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Project {
    root: String,
}

/// Where the project is.
#[utoipa::path(get, path = "/api/project", tag = "workspace",
    responses((status = 200, body = Project), (status = "default", body = Detail)))]
pub(super) async fn project(State(app): State<App>) -> ApiResult<Reply<Project>> {
    mode(&app)?;
    Ok(Reply(Project { root: place::root(&app).await }))
}

fn mode(app: &App) -> ApiResult<&'static str> {
    match app.settings().workspace.mode {
        WorkspaceMode::Off => Err(switched_off()),
        WorkspaceMode::Local => Ok("local"),
        // The same to a browser, wherever the sandbox is.
        WorkspaceMode::Sandbox | WorkspaceMode::Remote => Ok("sandbox"),
    }
}
