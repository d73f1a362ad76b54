//! Routes by what they cost: how often one caller may ask for them, and how they are counted.
//!
//! The UI asks for the tree of every open directory each 3 s, for git's status each 5 s and for
//! approvals; 200 looks a second are hundreds of open directories.

use http::{Method, StatusCode};

use crate::dialects::Dialect;
use crate::error::{ApiError, ApiResult};
use crate::rate::{RateKey, RateLimit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Look,
    Change,
    Search,
    Upload,
    Socket,
}

impl Group {
    const ALL: [Self; 5] = [Self::Look, Self::Change, Self::Search, Self::Upload, Self::Socket];

    /// Of a route by its path in the router; none of another dialect's and of health.
    pub(crate) fn of(method: &Method, route: &str) -> Option<Self> {
        match route {
            "/api/search" => Some(Self::Search),
            "/api/attachments" => Some(Self::Upload),
            _ if route.starts_with("/ws/") => Some(Self::Socket),
            _ if Dialect::of(route) != Dialect::Workspace || !route.starts_with("/api/") => None,
            _ if method == Method::GET || method == Method::HEAD => Some(Self::Look),
            _ => Some(Self::Change),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Change => "change",
            Self::Search => "search",
            Self::Upload => "upload",
            Self::Socket => "socket",
        }
    }

    /// A second, and at once.
    fn quota(self) -> (u32, u32) {
        match self {
            Self::Look | Self::Change => (200, 1_000),
            Self::Search => (50, 300),
            Self::Upload => (10, 100),
            Self::Socket => (50, 500),
        }
    }
}

/// Of every caller.
pub(crate) struct GroupLimits([RateLimit; 5]);

impl GroupLimits {
    pub(crate) fn new() -> Self {
        Self(Group::ALL.map(|group| {
            let (rate, burst) = group.quota();
            RateLimit::of(rate, burst)
        }))
    }

    pub(crate) fn check(&self, group: Group, key: &RateKey) -> ApiResult<()> {
        self.0[group as usize].wait(key).map_or(Ok(()), |wait| {
            let message = format!("Too many requests of this kind ({})", group.name());
            let status = StatusCode::TOO_MANY_REQUESTS;
            Err(ApiError::overloaded(status, "rate_limited", message, wait))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_its_group_and_each_group_and_caller_its_own_limit() {
        for (method, route, group) in [
            (Method::GET, "/api/tree", Some(Group::Look)),
            (Method::PUT, "/api/file", Some(Group::Change)),
            (Method::GET, "/api/search", Some(Group::Search)),
            (Method::POST, "/api/attachments", Some(Group::Upload)),
            (Method::GET, "/ws/claude-stream", Some(Group::Socket)),
            (Method::GET, "/v1/sandboxes", None),
            (Method::GET, "/readyz", None),
        ] {
            assert_eq!(Group::of(&method, route), group, "{route}");
        }
        let limits = GroupLimits::new();
        let key = |name: &str| RateKey::Token(name.to_owned());
        let refused = (0..400).find_map(|_| limits.check(Group::Search, &key("a")).err()).unwrap();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.retry_after.is_some());
        assert!(limits.check(Group::Search, &key("b")).is_ok());
        assert!(limits.check(Group::Look, &key("a")).is_ok());
    }
}
