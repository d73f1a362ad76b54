//! Whether a web page may send this request: the defence against cross-site calls.
//!
//! Browsers name the page's origin on every request that could change something, whatever its
//! content type, and newer ones say `Sec-Fetch-Site` on all of them. Pages of the same *site*
//! are refused, too: a sandbox's published port is another port of the same host.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::error::{ApiError, ApiResult};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const ALLOW_METHODS: &str = "GET, HEAD, POST, PUT, DELETE";
const ALLOW_HEADERS: &str = "authorization, x-remcochat-admin-token, content-type, range, \
                             if-range, if-none-match, last-event-id, x-request-id, \
                             mcp-session-id, mcp-protocol-version, x-sandbank-session";
const EXPOSE_HEADERS: &str = "x-request-id, content-range, etag, retry-after, mcp-session-id, \
                              x-remcochat-bash-tools-enabled";

#[derive(Debug, Clone, Default)]
pub(crate) struct OriginRule {
    allowed: Vec<String>,
}

impl OriginRule {
    pub(crate) fn new(allowed: &[String]) -> Self {
        Self { allowed: allowed.to_vec() }
    }

    /// The page's origin when there is one and it is allowed.
    pub(crate) fn check(&self, headers: &HeaderMap) -> ApiResult<Option<HeaderValue>> {
        let mut values = headers.get_all(header::ORIGIN).iter();
        match (values.next(), values.next()) {
            (Some(origin), None) if self.allows(origin) => Ok(Some(origin.clone())),
            (None, None) if !is_from_another_page(headers) => Ok(None),
            _ => Err(refusal()),
        }
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        self.allowed.iter().any(|allowed| origin.as_bytes() == allowed.as_bytes())
    }
}

fn is_from_another_page(headers: &HeaderMap) -> bool {
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    !matches!(site, None | Some(b"none" | b"same-origin"))
}

fn refusal() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", "web pages may not call this server")
        .with_hint("add the page's origin to auth.allowed_origins (SANDBANK_ALLOWED_ORIGINS)")
}

/// Lets an allowed page read the answer. Never with credentials: tokens are sent explicitly.
pub(crate) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSE_HEADERS));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub(crate) fn preflight(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(ALLOW_METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOW_HEADERS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(pairs: &[(&'static str, &'static str)]) -> bool {
        let headers = pairs.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        });
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| _ = map.append(name, value));
        OriginRule::new(&["https://app.example".to_owned()]).check(&map).is_ok()
    }

    #[test]
    fn programs_and_allowed_pages_pass() {
        assert!(passes(&[]));
        assert!(passes(&[("origin", "https://app.example")]));
        assert!(passes(&[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")]));
        assert!(passes(&[("sec-fetch-site", "none")]));
        assert!(passes(&[("sec-fetch-site", "same-origin")]));
    }

    #[test]
    fn every_other_page_is_refused() {
        for origin in [
            "null",
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil",
            "http://127.0.0.1:3000",
            "",
        ] {
            assert!(!passes(&[("origin", origin)]), "{origin} passed");
        }
        assert!(!passes(&[("sec-fetch-site", "cross-site")]));
        assert!(!passes(&[("sec-fetch-site", "same-site")]));
        assert!(!passes(&[("origin", "https://app.example"), ("origin", "https://evil.example")]));
    }
}
