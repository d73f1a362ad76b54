//! Whether a request was meant for this server: the defence against DNS rebinding.
//!
//! A web page can point its own name at 127.0.0.1, but it cannot make the browser send another
//! `Host`. So names are accepted only when they are listed; addresses only when they are ours.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri, header};

use crate::connection::Connection;
use crate::error::{ApiError, ApiResult};

/// Names that are accepted besides loopback and the connection's own address.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostRule {
    names: Vec<String>,
}

impl HostRule {
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let bare = |name: &String| name.trim_matches(['[', ']']).to_ascii_lowercase();
        Self { names: names.into_iter().map(bare).collect() }
    }

    /// The request's host name, without brackets and port, once it is accepted.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        connection: &Connection,
    ) -> ApiResult<String> {
        let host = stated_host(headers, uri)?;
        if self.accepts(&host, connection) {
            return Ok(host);
        }
        Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host_not_allowed",
            format!("this server does not answer for the host {host:?}"),
        )
        .with_hint("use a loopback address, or add the name to auth.allowed_hosts (SANDBANK_ALLOWED_HOSTS)"))
    }

    fn accepts(&self, host: &str, connection: &Connection) -> bool {
        if let Ok(address) = host.parse::<IpAddr>() {
            let own = connection.local.is_some_and(|local| same(local.ip(), address));
            let listed = self.names.iter().any(|name| name.parse() == Ok(address));
            return is_loopback(host) || own || listed;
        }
        is_loopback(host) || self.names.iter().any(|known| known == bare_name(host))
    }
}

/// Whether the client itself means its own machine, by name or address.
pub(crate) fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => bare_name(host) == "localhost",
    }
}

fn bare_name(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// An IPv4 connection on an IPv6 socket has a mapped address.
fn same(local: IpAddr, stated: IpAddr) -> bool {
    local.to_canonical() == stated.to_canonical()
}

/// Exactly one `Host`, and the same as in the request line where that has one, too.
fn stated_host(headers: &HeaderMap, uri: &Uri) -> ApiResult<String> {
    let malformed =
        |what: &str| ApiError::bad_request("bad_host", format!("the request has {what}"));
    let mut values = headers.get_all(header::HOST).iter();
    let value = values.next().ok_or_else(|| malformed("no Host header"))?;
    if values.next().is_some() {
        return Err(malformed("more than one Host header"));
    }
    let authority = Authority::try_from(value.as_bytes());
    let authority = authority.map_err(|_| malformed("a malformed Host header"))?;
    if authority.as_str().contains('@') || !port_is_a_number(&authority) {
        return Err(malformed("a malformed Host header"));
    }
    match uri.authority() {
        Some(target) if target != &authority => Err(malformed("two different hosts")),
        _ => Ok(authority.host().trim_matches(['[', ']']).to_ascii_lowercase()),
    }
}

fn port_is_a_number(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    rest.is_some_and(|rest| rest.is_empty() || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str) -> Result<String, StatusCode> {
        let headers = [(header::HOST, host.parse().unwrap())].into_iter().collect();
        let rule = HostRule::new(&["Sandbox.Example".to_owned(), "[fd00::1]".to_owned()]);
        let connection = Connection { local: "10.1.2.3:80".parse().ok(), ..Connection::default() };
        rule.check(&headers, &Uri::from_static("/"), &connection).map_err(|error| error.status)
    }

    #[test]
    fn loopback_names_our_own_address_and_listed_names_pass() {
        for (host, name) in [
            ("localhost", "localhost"),
            ("LocalHost:8080", "localhost"),
            ("localhost.:1", "localhost."),
            ("127.0.0.1:9", "127.0.0.1"),
            ("127.8.8.8", "127.8.8.8"),
            ("[::1]:8080", "::1"),
            ("10.1.2.3", "10.1.2.3"),
            ("sandbox.example:443", "sandbox.example"),
            ("[fd00::1]", "fd00::1"),
        ] {
            assert_eq!(check(host), Ok(name.to_owned()), "{host}");
        }
    }

    #[test]
    fn rebound_names_and_foreign_addresses_are_misdirected() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "xsandbox.example",
            "10.1.2.4",
            "[::2]",
            "0.0.0.0",
            "127.1",
            "2130706433",
        ] {
            assert_eq!(check(host), Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
        }
    }

    #[test]
    fn malformed_missing_and_contradicting_hosts_are_refused() {
        for host in ["", "user@localhost", "localhost:abc", "localhost:99999", "a b", "localhost/x"]
        {
            assert_eq!(check(host), Err(StatusCode::BAD_REQUEST), "{host:?}");
        }
        let (rule, connection) = (HostRule::default(), Connection::default());
        let absolute = Uri::from_static("http://evil.example/v1/health");
        let headers: HeaderMap =
            [(header::HOST, "localhost".parse().unwrap())].into_iter().collect();
        let status = |result: ApiResult<String>| result.unwrap_err().status;
        assert_eq!(status(rule.check(&headers, &absolute, &connection)), StatusCode::BAD_REQUEST);
        let none = HeaderMap::new();
        let uri = Uri::from_static("/");
        assert_eq!(status(rule.check(&none, &uri, &connection)), StatusCode::BAD_REQUEST);
        let mut two = headers.clone();
        two.append(header::HOST, "localhost".parse().unwrap());
        assert_eq!(status(rule.check(&two, &uri, &connection)), StatusCode::BAD_REQUEST);
    }
}
