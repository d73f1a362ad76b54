//! Scoped tokens: shown once when they are made, kept as hashes, revoked at once.

use axum::extract::State;
use sandbank_store::{TokenRow, TokenScope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::{Caller, token};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Segments, Strict};
use crate::limits::MAX_TOKEN_NAME_CHARS;
use crate::reply::{Done, Reply};
use crate::unix_time::now_ms;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenBody {
    /// Letters, digits, `.`, `_` and `-`, beginning with a letter or digit; unique among live
    /// tokens.
    name: String,
    /// `admin`, `sandbox` or `read_only`.
    #[schema(value_type = String)]
    scope: TokenScope,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewToken)]
pub(super) struct TokenReply {
    name: String,
    #[schema(value_type = String)]
    scope: TokenScope,
    /// Not shown again.
    token: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Token)]
pub(super) struct TokenView {
    name: String,
    #[schema(value_type = String)]
    scope: TokenScope,
    created_at_ms: u64,
    revoked_at_ms: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenList {
    tokens: Vec<TokenView>,
}

impl From<TokenRow> for TokenView {
    fn from(row: TokenRow) -> Self {
        let TokenRow { name, scope, created_at_ms, revoked_at_ms, .. } = row;
        Self { name, scope, created_at_ms, revoked_at_ms }
    }
}

/// Every scoped token there ever was.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens",
    responses((status = 200, body = TokenList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(State(app): State<App>) -> ApiResult<Reply<TokenList>> {
    let rows = app.store().tokens().list().await?;
    Ok(Reply(TokenList { tokens: rows.into_iter().map(Into::into).collect() }))
}

/// Make a token with a scope.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", request_body = TokenBody,
    responses((status = 200, body = TokenReply), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Strict(body): Strict<TokenBody>,
) -> ApiResult<Reply<TokenReply>> {
    let clean = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let fits = (1..=MAX_TOKEN_NAME_CHARS).contains(&body.name.len());
    // Nobody could revoke a token called `..`: clients resolve that before they send it.
    let begins = body.name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if !fits || !begins || !body.name.bytes().all(clean) {
        let message = format!(
            "a token's name has 1 to {MAX_TOKEN_NAME_CHARS} characters of A-Z a-z 0-9 . _ - and \
             begins with a letter or digit"
        );
        return Err(ApiError::bad_request("bad_token_name", message));
    }
    let secret = token::random();
    let hash = token::hash(secret.expose());
    app.store().tokens().insert(&body.name, body.scope, hash, now_ms()).await?;
    tracing::info!(token = %body.name, scope = body.scope.as_str(), by = %caller.name, "token made");
    let TokenBody { name, scope } = body;
    Ok(Reply(TokenReply { name, scope, token: secret.expose().to_owned() }))
}

/// Revoke a token; the next request with it is refused.
#[utoipa::path(delete, path = "/v1/tokens/{name}", tag = "tokens",
    params(("name" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    segments: Segments,
) -> ApiResult<Reply<Done>> {
    let name = segments.get("name")?;
    if !app.store().tokens().revoke(name, now_ms()).await? {
        return Err(ApiError::not_found("token_not_found"));
    }
    app.token_was_revoked(name);
    tracing::info!(token = %name, by = %caller.name, "token revoked");
    Ok(Done::reply())
}
