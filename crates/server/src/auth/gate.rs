//! The one door: every request passes here before a handler sees it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use sandbank_store::Store;

use super::host::HostRule;
use super::origin::{self, OriginRule};
use super::scope::{Access, Scope};
use super::token::{self, Principal, Tokens};
use crate::app::App;
use crate::config::{Secret, Settings};
use crate::connection::Connection;
use crate::error::{ApiError, ApiResult};
use crate::rate::{RateKey, RateLimit};
use crate::routes::AccessTable;

pub(crate) struct Gate {
    hosts: HostRule,
    origins: OriginRule,
    pub(crate) tokens: Tokens,
    loopback_open: bool,
    access: AccessTable,
    rate: RateLimit,
}

/// Who passed, for handlers.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// For the log, the post-mortem and the audit: a token's name, or `loopback`.
    pub(crate) name: Arc<str>,
    /// As the client wrote it, without the port.
    pub(crate) host: Arc<str>,
}

impl Gate {
    pub(crate) fn new(
        settings: &Settings,
        file_token: &Secret,
        store: Store,
        access: AccessTable,
    ) -> Self {
        let auth = &settings.auth;
        let mut admins = vec![("admin", file_token)];
        admins.extend(auth.admin_token.as_ref().map(|token| ("configured-admin", token)));
        Self {
            hosts: HostRule::new(auth.allowed_hosts.iter().chain(&settings.ports.public_host)),
            origins: OriginRule::new(&auth.allowed_origins),
            tokens: Tokens::new(&admins, store),
            loopback_open: auth.loopback_open,
            access,
            rate: RateLimit::new(&settings.server),
        }
    }

    async fn principal(&self, headers: &HeaderMap) -> ApiResult<Option<Principal>> {
        match token::presented(headers) {
            Some(token) => Ok(self.tokens.principal(token).await?),
            None => Ok(None),
        }
    }

    fn decide(
        &self,
        access: Access,
        connection: &Connection,
        principal: Option<&Principal>,
    ) -> ApiResult<()> {
        let needed = match access {
            Access::Public => return Ok(()),
            Access::Sandboxd(scope) | Access::Token(scope) => scope,
        };
        match principal {
            Some(principal) if principal.scope.allows(needed) => Ok(()),
            Some(principal) => Err(forbidden(principal.scope, needed)),
            None if self.is_open(access, connection) => Ok(()),
            None => Err(ApiError::unauthorized()),
        }
    }

    fn is_open(&self, access: Access, connection: &Connection) -> bool {
        matches!(access, Access::Sandboxd(_)) && connection.loopback_bind && self.loopback_open
    }
}

fn forbidden(has: Scope, needed: Scope) -> ApiError {
    let message = format!("this token's scope is {has:?}, the route needs {needed:?}");
    ApiError::new(StatusCode::FORBIDDEN, "scope_too_small", message)
        .with_hint("use a token with a larger scope")
}

/// The middleware. Order matters: nothing is looked up for a request that came from elsewhere.
pub(crate) async fn pass(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    let connection = request.extensions().get::<Connection>().copied().unwrap_or_default();
    let origin = match gate.origins.check(request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refusal.into_response(),
    };
    let mut response = match admit(&gate, &connection, &mut request).await {
        Err(refusal) => refusal.into_response(),
        Ok(()) if origin::is_preflight(request.method(), request.headers()) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            origin::preflight(response.headers_mut());
            response
        }
        Ok(()) => next.run(request).await,
    };
    if let Some(origin) = origin {
        origin::allow(response.headers_mut(), origin);
    }
    response
}

async fn admit(gate: &Gate, connection: &Connection, request: &mut Request) -> ApiResult<()> {
    let host = gate.hosts.check(request.headers(), request.uri(), connection)?;
    let principal = gate.principal(request.headers()).await?;
    gate.rate.check(match &principal {
        Some(principal) => RateKey::Token(principal.name.clone()),
        None => RateKey::Peer(connection.peer_network()),
    })?;
    if !origin::is_preflight(request.method(), request.headers()) {
        let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let access = gate.access.of(request.method(), route);
        gate.decide(access, connection, principal.as_ref())?;
    }
    let name = principal.map_or("loopback".into(), |principal| principal.name.into());
    request.extensions_mut().insert(Caller { name, host: host.into() });
    Ok(())
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::internal)
    }
}
