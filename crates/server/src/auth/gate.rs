//! The one door: every request passes here before a handler sees it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sandbank_store::Store;
use tokio_util::sync::CancellationToken;

use super::framing;
use super::host::{self, HostRule};
use super::origin::{self, OriginRule};
use super::revocation::{self, Revocations};
use super::scope::{Access, Scope};
use super::token::{self, Presented, Principal, Tokens};
use crate::app::App;
use crate::config::{Secret, Settings};
use crate::connection::Connection;
use crate::dialects::{Group, GroupLimits};
use crate::error::{ApiError, ApiResult};
use crate::rate::{RateKey, RateLimit};
use crate::routes::AccessTable;

pub(crate) struct Gate {
    hosts: HostRule,
    origins: OriginRule,
    pub(crate) tokens: Tokens,
    pub(crate) revocations: Revocations,
    loopback_open: bool,
    workspace_open: bool,
    tools_open: bool,
    access: AccessTable,
    rate: RateLimit,
    groups: GroupLimits,
}

/// Who passed, for handlers.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// For the log, the post-mortem and the audit: a token's name, or `loopback`.
    pub(crate) name: Arc<str>,
    /// As the client wrote it, without the port.
    pub(crate) host: Arc<str>,
    /// It has one that counts; nobody else may open what others keep.
    pub(crate) has_token: bool,
    /// It may do everything.
    pub(crate) is_admin: bool,
    /// Of a token that can be revoked while it is used.
    revoked: Option<CancellationToken>,
}

impl Caller {
    /// Resolves when the token it came with is revoked.
    pub(crate) async fn revoked(&self) {
        cancelled(self.revoked.as_ref()).await;
    }
}

/// Never resolves without a token that can be revoked.
async fn cancelled(revoked: Option<&CancellationToken>) {
    match revoked {
        Some(revoked) => revoked.cancelled().await,
        None => std::future::pending().await,
    }
}

/// What a request's credentials prove.
enum Identity {
    /// It has none.
    Anonymous,
    /// It has some that are no token, such as one without `Bearer` before it.
    Malformed,
    /// It has a token that is worth nothing here: unknown or revoked.
    Rejected,
    Known(Principal),
}

impl Gate {
    pub(crate) fn new(
        settings: &Settings,
        file_token: &Secret,
        store: Store,
        access: AccessTable,
    ) -> Self {
        let auth = &settings.auth;
        let mut configured = vec![("admin", Scope::Admin, file_token)];
        let admin = auth.admin_token.as_ref();
        configured.extend(admin.map(|token| ("configured-admin", Scope::Admin, token)));
        let api_key = settings.sessions.api_key.as_ref();
        configured.extend(api_key.map(|token| ("api-key", Scope::Sessions, token)));
        let tools = auth.tools_token.as_ref();
        configured.extend(tools.map(|token| ("tools", Scope::Tools, token)));
        Self {
            hosts: HostRule::new(auth.allowed_hosts.iter().chain(&settings.ports.public_host)),
            origins: OriginRule::new(&auth.allowed_origins),
            tokens: Tokens::new(&configured, store),
            revocations: Revocations::default(),
            loopback_open: auth.loopback_open,
            workspace_open: settings.workspace.loopback_open,
            tools_open: auth.loopback_open && tools_are_local(&settings.tools),
            access,
            rate: RateLimit::new(&settings.server),
            groups: GroupLimits::new(),
        }
    }

    async fn identity(&self, headers: &HeaderMap) -> ApiResult<Identity> {
        Ok(match token::presented(headers) {
            Presented::Nothing => Identity::Anonymous,
            Presented::Malformed => Identity::Malformed,
            Presented::Token(token) => {
                self.tokens.principal(token).await?.map_or(Identity::Rejected, Identity::Known)
            }
        })
    }

    fn decide(
        &self,
        access: Access,
        connection: &Connection,
        host: &str,
        identity: &Identity,
    ) -> ApiResult<()> {
        let Some(needed) = access.needed() else { return Ok(()) };
        match identity {
            Identity::Known(principal) if access.allows(principal.scope) => Ok(()),
            Identity::Known(principal) => Err(forbidden(principal.scope, needed)),
            Identity::Malformed => {
                Err(rejected("the credentials are not of the form `Authorization: Bearer <token>`"))
            }
            Identity::Rejected => Err(rejected("the token that was sent is not valid here")),
            Identity::Anonymous if self.is_open(access, connection, host) => Ok(()),
            Identity::Anonymous => Err(ApiError::unauthorized()),
        }
    }

    /// The bind alone does not tell: behind a reverse proxy the whole world comes from loopback,
    /// but it asks for the proxy's name.
    fn is_open(&self, access: Access, connection: &Connection, host: &str) -> bool {
        let local = connection.loopback_bind && host::is_loopback(host);
        local
            && match access {
                Access::Sandboxd(_) | Access::Chat(_) => self.loopback_open,
                Access::Workspace(_) => self.workspace_open,
                Access::Tools(_) => self.tools_open,
                Access::Public | Access::Token(_) | Access::Sessions(_) => false,
            }
    }
}

fn tools_are_local(tools: &sandbank_tools::Config) -> bool {
    tools.enabled && tools.access == sandbank_tools::Access::Localhost
}

fn rejected(why: &str) -> ApiError {
    ApiError::unauthorized().with_hint(format!(
        "{why}: use the daemon's SANDBOXD_ADMIN_TOKEN (or SANDBANK_ADMIN_TOKEN), the one in the \
         data directory's `token` file, or a scoped one that is not revoked"
    ))
}

fn forbidden(has: Scope, needed: Scope) -> ApiError {
    if has == Scope::Sessions {
        let message = "the API key is for /v1/sessions and /v1/workspaces only";
        return ApiError::new(StatusCode::FORBIDDEN, "scope_too_small", message).with_hint(
            "use a token of this server; an admin makes scoped ones at POST /v1/tokens",
        );
    }
    if has == Scope::Tools {
        let message = "REMCOCHAT_ADMIN_TOKEN is for the tools only";
        return ApiError::new(StatusCode::FORBIDDEN, "scope_too_small", message)
            .with_hint("use a token of this server");
    }
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
    if let Err(refusal) = framing::check(request.headers()) {
        // What follows on this connection may be a part of this request.
        let mut response = refusal.into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    let connection = request.extensions().get::<Connection>().copied().unwrap_or_default();
    let origin = match gate.origins.check(request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refusal.into_response(),
    };
    let admitted = admit(&gate, &connection, &mut request).await;
    let caller = request.extensions().get::<Caller>();
    let revoked = caller.and_then(|caller| caller.revoked.clone());
    let mut response = match admitted {
        Err(refusal) => refusal.into_response(),
        Ok(()) if origin::is_preflight(request.method(), request.headers()) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            origin::preflight(response.headers_mut());
            response
        }
        Ok(()) => tokio::select! {
            biased;
            response = next.run(request) => response,
            () = cancelled(revoked.as_ref()) => {
                rejected("the token was revoked before the answer").into_response()
            }
        },
    };
    if let Some(revoked) = revoked {
        response = response.map(|body| revocation::cut_when(revoked, body));
    }
    if let Some(origin) = origin {
        origin::allow(response.headers_mut(), origin);
    }
    response
}

async fn admit(gate: &Gate, connection: &Connection, request: &mut Request) -> ApiResult<()> {
    let host = gate.hosts.check(request.headers(), request.uri(), connection)?;
    let (identity, revoked) = identify(gate, request.headers()).await?;
    let key = match &identity {
        Identity::Known(principal) => RateKey::Token(principal.name.clone()),
        Identity::Anonymous | Identity::Malformed | Identity::Rejected => {
            RateKey::Peer(connection.peer_network())
        }
    };
    gate.rate.check(&key)?;
    if !origin::is_preflight(request.method(), request.headers()) {
        let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let access = gate.access.of(request.method(), route, request.uri().path());
        gate.decide(access, connection, &host, &identity)?;
        let group = route.and_then(|route| Group::of(request.method(), route));
        if let Some(group) = group {
            gate.groups.check(group, &key)?;
        }
    }
    let has_token = matches!(identity, Identity::Known(_));
    let is_admin = matches!(&identity, Identity::Known(known) if known.scope == Scope::Admin);
    let name = match identity {
        Identity::Known(principal) => principal.name.into(),
        Identity::Anonymous | Identity::Malformed | Identity::Rejected => "loopback".into(),
    };
    request.extensions_mut().insert(Caller {
        name,
        host: host.into(),
        has_token,
        is_admin,
        revoked,
    });
    Ok(())
}

/// Who it is, and what tells that it no longer is.
async fn identify(
    gate: &Gate,
    headers: &HeaderMap,
) -> ApiResult<(Identity, Option<CancellationToken>)> {
    loop {
        let times = gate.revocations.times();
        let identity = gate.identity(headers).await?;
        let Identity::Known(principal) = &identity else { return Ok((identity, None)) };
        if !principal.revocable {
            return Ok((identity, None));
        }
        if let Some(revoked) = gate.revocations.watch(&principal.name, times) {
            return Ok((identity, Some(revoked)));
        }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::internal)
    }
}
