//! Ports: a sandbox's listeners, reachable from outside.

use std::net::IpAddr;

use axum::extract::State;
use sandbank_orchestrator::Published;
use serde::Serialize;
use utoipa::ToSchema;

use super::sandbox_view::PublishedView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{SandboxPath, Segments};
use crate::reply::{Done, Reply};

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PortReply {
    /// False when the port is not one the sandbox was created with.
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

const NOT_FOUND: PortReply = PortReply { found: false, host_port: None, url: None };

/// The URL of a port; published at the first call, the same ever after.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports/{port}", tag = "ports",
    params(("id" = String, Path), ("port" = u16, Path)),
    responses((status = 200, body = PortReply), (status = "default", body = ErrorBody)))]
pub(super) async fn publish(
    State(app): State<App>,
    caller: Caller,
    SandboxPath(id): SandboxPath,
    segments: Segments,
) -> ApiResult<Reply<PortReply>> {
    let Some(port) = port(&segments)? else {
        app.orchestrator().inspect(&id).await?;
        return Ok(Reply(NOT_FOUND));
    };
    let published = app.orchestrator().publish(&id, port).await?;
    Ok(Reply(published.map_or(NOT_FOUND, |published| PortReply {
        found: true,
        host_port: Some(published.host_port),
        url: Some(url(&app, &caller, &published)),
    })))
}

/// None for a number that is no port; an error for what is no number.
fn port(segments: &Segments) -> ApiResult<Option<u16>> {
    let text = segments.get("port")?;
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ApiError::not_found("port_not_found"));
    }
    Ok(text.parse::<u16>().ok().filter(|port| *port > 0))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PortList {
    /// Ports that may be published.
    allowed: Vec<u16>,
    published: Vec<PublishedView>,
}

/// The ports a sandbox was created with, and those that are published.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports", tag = "ports",
    params(("id" = String, Path)),
    responses((status = 200, body = PortList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<PortList>> {
    let info = app.orchestrator().inspect(&id).await?;
    let published = info.published.iter().map(|port| PublishedView::new(&app, &caller, port));
    Ok(Reply(PortList { published: published.collect(), allowed: info.ports }))
}

/// Close a published port.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/ports/{port}", tag = "ports",
    params(("id" = String, Path), ("port" = u16, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn unpublish(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    segments: Segments,
) -> ApiResult<Reply<Done>> {
    let port = port(&segments)?.ok_or_else(|| ApiError::not_found("port_not_found"))?;
    app.orchestrator().unpublish(&id, port).await?;
    Ok(Done::reply())
}

/// The configured host; else the publish address when it is a certain one; else the host by
/// which the caller reached this daemon.
pub(super) fn url(app: &App, caller: &Caller, published: &Published) -> String {
    let settings = &app.settings().ports;
    let host = settings.public_host.as_deref();
    url_of(&settings.public_proto, host, published.address, &caller.host, published.host_port)
}

fn url_of(proto: &str, public: Option<&str>, address: IpAddr, host: &str, port: u16) -> String {
    let host = match public {
        Some(host) => host.to_owned(),
        None if !address.is_unspecified() => address.to_string(),
        None => host.to_owned(),
    };
    let bare = host.trim_matches(['[', ']']);
    if bare.contains(':') {
        format!("{proto}://[{bare}]:{port}")
    } else {
        format!("{proto}://{bare}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_uses_the_best_host_there_is() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let any = IpAddr::from([0, 0, 0, 0]);
        let of = |public, address, host| url_of("http", public, address, host, 80);
        assert_eq!(of(Some("x.example"), local, "h"), "http://x.example:80");
        assert_eq!(of(None, local, "h"), "http://127.0.0.1:80");
        assert_eq!(of(None, any, "h.example"), "http://h.example:80");
        assert_eq!(of(None, any, "::1"), "http://[::1]:80");
        assert_eq!(of(None, IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]), "h"), "http://[::1]:80");
    }
}
