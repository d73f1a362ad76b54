//! What a workspace service refuses on its own, before a request gets to the runner.

use http::{HeaderValue, Response, StatusCode};
use sandbank_channel::{ChannelBody, ObstacleKind, full_body};
use serde_json::json;

/// Says which refusal it is; answers of the runner do not have it.
pub(crate) const REFUSAL_HEADER: &str = "x-workspace-refusal";

/// By how many seconds the caller's clock is behind.
pub(crate) const CLOCK_HEADER: &str = "x-workspace-clock-behind";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Auth,
    /// Not signed for this path, and there is no such path: the address has one too many before it.
    Path,
    Clock,
    /// Used before, or signed before the service began to remember.
    Stale,
    Version,
    Body,
    TooLarge,
    Route,
    Unavailable,
    Failed,
}

const ALL: [Refusal; 10] = [
    Refusal::Auth,
    Refusal::Path,
    Refusal::Clock,
    Refusal::Stale,
    Refusal::Version,
    Refusal::Body,
    Refusal::TooLarge,
    Refusal::Route,
    Refusal::Unavailable,
    Refusal::Failed,
];

impl Refusal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Path => "path",
            Self::Clock => "clock",
            Self::Stale => "stale",
            Self::Version => "version",
            Self::Body => "body",
            Self::TooLarge => "too_large",
            Self::Route => "route",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|refusal| refusal.name() == name)
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Auth | Self::Path | Self::Clock | Self::Stale => StatusCode::FORBIDDEN,
            Self::Version | Self::Body => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Route => StatusCode::NOT_FOUND,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::BAD_GATEWAY,
        }
    }

    pub(crate) fn obstacle(self) -> ObstacleKind {
        match self {
            Self::Auth | Self::Clock | Self::Body => ObstacleKind::Auth,
            Self::Path => ObstacleKind::BadPath,
            Self::Stale => ObstacleKind::Stale,
            Self::Version => ObstacleKind::Version,
            Self::TooLarge | Self::Route => ObstacleKind::Forbidden,
            Self::Unavailable => ObstacleKind::Unavailable,
            Self::Failed => ObstacleKind::BadGateway,
        }
    }

    pub(crate) fn answer(self, detail: &str) -> Response<ChannelBody> {
        let mut response = json_answer(self.status(), &json!({ "detail": detail }));
        let name = HeaderValue::from_static(self.name());
        response.headers_mut().insert(REFUSAL_HEADER, name);
        response
    }
}

pub(crate) fn json_answer(status: StatusCode, body: &serde_json::Value) -> Response<ChannelBody> {
    let mut response = Response::new(full_body(body.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_found_by_its_name() {
        for refusal in ALL {
            assert_eq!(Refusal::named(refusal.name()), Some(refusal));
        }
        assert_eq!(Refusal::named("else"), None);
    }
}
