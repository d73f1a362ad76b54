//! Ids of sessions and workspaces in paths.

use std::fmt;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use http::request::Parts;
use sandbank_engine::WorkspaceId;
use sandbank_orchestrator::SandboxKey;

use super::error;
use crate::app::App;
use crate::dialects::reserved_keys;
use crate::error::{ApiError, ApiResult};
use crate::extract::Segments;

/// What the first version put before the id.
const LEGACY_PREFIX: &str = "sandkasten-ws-";

/// `xxxxxxxx-xxx` in hexadecimal digits; four at the end and whole UUIDs are accepted, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(String);

impl SessionId {
    pub(super) fn random() -> Self {
        let mut bytes = [0u8; 6];
        getrandom::fill(&mut bytes).expect("the kernel's random source answers");
        let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        Self(format!("{:08x}-{:03x}", number >> 12 & 0xffff_ffff, number & 0xfff))
    }

    pub(super) fn key(&self) -> SandboxKey {
        format!("{}{}", reserved_keys::SESSION, self.0).parse().expect("ids are short and plain")
    }

    /// Of a session's sandbox.
    pub(super) fn of(key: &SandboxKey) -> Option<Self> {
        key.as_str().strip_prefix(reserved_keys::SESSION)?.parse().ok()
    }
}

impl FromStr for SessionId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let lengths: Vec<usize> = text.split('-').map(str::len).collect();
        let shape = matches!(lengths[..], [8, 3 | 4] | [8, 4, 4, 4, 12]);
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b == b'-';
        (shape && text.bytes().all(hex)).then(|| Self(text.to_owned())).ok_or(())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromRequestParts<App> for SessionId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let segments = Segments::from_request_parts(parts, app).await?;
        segments.get("id")?.parse().map_err(|()| {
            error::invalid("a session id has 8 hexadecimal digits, a dash and 3 more")
        })
    }
}

/// `/v1/workspaces/{id}…`
pub(super) struct WorkspacePath(pub(super) WorkspaceId);

impl FromRequestParts<App> for WorkspacePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let segments = Segments::from_request_parts(parts, app).await?;
        workspace_id(app, segments.get("id")?).await.map(Self)
    }
}

/// The one of exactly this name, where there is one; else the name may have the first version's
/// prefix.
pub(super) async fn workspace_id(app: &App, text: &str) -> ApiResult<WorkspaceId> {
    if !app.settings().sessions.workspaces {
        let message = "workspaces are switched off on this server (sessions.workspaces)";
        return Err(ApiError::bad_request("INVALID_WORKSPACE", message));
    }
    let exact = text.parse::<WorkspaceId>();
    let bare = text.strip_prefix(LEGACY_PREFIX).and_then(|bare| bare.parse().ok());
    match (exact, bare) {
        (Ok(exact), Some(_)) if app.orchestrator().has_workspace(&exact).await? => Ok(exact),
        (_, Some(bare)) => Ok(bare),
        (exact, None) => {
            exact.map_err(|error| ApiError::bad_request("INVALID_WORKSPACE", error.to_string()))
        }
    }
}

pub(super) fn caretaker_key(workspace: &WorkspaceId) -> SandboxKey {
    let key = format!("{}{workspace}", reserved_keys::WORKSPACE);
    key.parse().expect("names of workspaces are short and plain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_twelve_characters_and_differ() {
        let (a, b) = (SessionId::random(), SessionId::random());
        assert_ne!(a, b);
        assert_eq!(a.to_string().len(), 12);
        assert_eq!(a.to_string().parse(), Ok(a.clone()));
        assert_eq!(SessionId::of(&a.key()), Some(a));
    }

    #[test]
    fn only_hexadecimal_digits_in_one_of_the_shapes_pass() {
        for good in ["0123abcd-0ef", "0123abcd-0ef1", "01234567-89ab-cdef-0123-456789abcdef"] {
            assert!(good.parse::<SessionId>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "0123abcd",
            "0123abcd-",
            "0123abcg-0ef",
            "0123ABCD-0EF",
            "x",
            "0123abcd-0ef12",
            "0123abcd-0e-",
        ] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }
}
