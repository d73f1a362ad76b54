//! Everything the gate reads from a request's head.

use http::{HeaderMap, Uri};

use super::framing;
use super::host::{HostRule, is_loopback};
use super::origin::OriginRule;
use super::token::{Presented, presented};
use crate::connection::Connection;

pub(crate) fn headers(headers: &HeaderMap, uri: &Uri, connection: &Connection) {
    let listed = ["app.example".to_owned()];
    if let Ok(host) = HostRule::new(&listed).check(headers, uri, connection) {
        assert!(is_loopback(&host) || host.trim_end_matches('.') == listed[0], "{host}");
    }
    let allowed = ["https://app.example".to_owned()];
    if let Ok(Some(origin)) = OriginRule::new(&allowed).check(headers) {
        assert_eq!(origin.as_bytes(), allowed[0].as_bytes());
    }
    if let Presented::Token(token) = presented(headers) {
        assert!(!token.is_empty() && token.trim() == token);
    }
    let _ = framing::check(headers);
}
