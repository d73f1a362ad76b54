//! Who asks: what the gates are told, and which session it is about.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;
use sandbank_tools::{Closed, Surface, Toolbox};

use super::error;
use crate::app::App;
use crate::auth::Caller;
use crate::connection::Connection;
use crate::error::{ApiError, ApiResult};

/// The conversation whose sandbox it is; `default` where nobody says.
const SESSION: &str = "x-sandbank-session";

/// Names of sessions that belong to one caller begin so, and none that a client of these routes gives.
pub(in crate::dialects) const OWNED: char = '@';

/// By which a proxy says that a request is another's. They take something away and never give
/// anything: everybody can write them.
const FORWARDING: &[&str] = &[
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];

/// A caller whom the daemon's own gate let in; the tools' gates have yet to.
pub(super) struct Asking {
    facts: sandbank_tools::Caller,
    host: Arc<str>,
    session: String,
}

impl Asking {
    pub(super) async fn is_admitted(&self, app: &App) -> Result<(), Closed> {
        app.tools().admit(&self.facts).await
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    pub(super) fn toolbox(&self, app: &App) -> ApiResult<Arc<dyn Toolbox>> {
        let toolbox = app.tools().toolbox(&self.session, Surface::Http, Some(&self.host));
        toolbox.map_err(|wrong| error::of(&wrong))
    }
}

impl FromRequestParts<App> for Asking {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let facts = facts(parts, &caller);
        Ok(Self { facts, host: caller.host, session: session(&parts.headers)? })
    }
}

/// What the tools' gates are told.
pub(in crate::dialects) fn facts(parts: &Parts, caller: &Caller) -> sandbank_tools::Caller {
    let connection = parts.extensions.get::<Connection>().copied().unwrap_or_default();
    sandbank_tools::Caller {
        peer: connection.peer.map(|peer| peer.ip()),
        forwarded: FORWARDING.iter().any(|name| parts.headers.contains_key(*name)),
        // One that is not enough for these routes does not get here.
        has_token: caller.has_token,
    }
}

fn session(headers: &HeaderMap) -> ApiResult<String> {
    match headers.get(SESSION) {
        None => Ok("default".to_owned()),
        Some(value) => match std::str::from_utf8(value.as_bytes()) {
            Ok(name) if name.trim_start().starts_with(OWNED) => {
                let message = format!("the name of a session cannot begin with {OWNED}");
                Err(ApiError::bad_request("bad_session", message))
            }
            Ok(name) => Ok(name.to_owned()),
            Err(_) => {
                let message = format!("the header {SESSION} is not UTF-8");
                Err(ApiError::bad_request("bad_session", message))
            }
        },
    }
}
