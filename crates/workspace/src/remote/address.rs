//! The address of a workspace service, as a person writes it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) secure: bool,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Before every path; empty, or `/like/this`.
    pub(crate) base: String,
}

impl Address {
    /// Credentials, queries and fragments have no place in it. The error does not repeat the text,
    /// which may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: http::Uri = text.parse().map_err(|_| "it is not a URL")?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("it does not begin with http:// or https://"),
        };
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it holds a user or password, which are not used");
        }
        if uri.query().is_some() || text.contains('#') {
            return Err("it has a query or a fragment");
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err("it names no host");
        }
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let base = uri.path().trim_end_matches('/').to_owned();
        if port == 0 || base.contains("..") {
            return Err("its port or path makes no sense");
        }
        Ok(Self { secure, host, port, base })
    }

    pub(crate) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_scheme_a_host_a_port_and_a_path() {
        let parse = |text| Address::parse(text).unwrap();
        let plain = parse("http://box:9000");
        assert_eq!((plain.authority(), plain.base.as_str()), ("box:9000".to_owned(), ""));
        let secure = parse("https://[::1]/ws/");
        assert_eq!((secure.authority(), secure.base.as_str()), ("[::1]:443".to_owned(), "/ws"));
        for bad in [
            "box:9000",
            "ftp://box",
            "http://",
            "http://user:hunter2@box",
            "http://box/?x=1",
            "http://box/#x",
            "http://box/a/../b",
            "/path",
            "",
        ] {
            let error = Address::parse(bad).unwrap_err();
            assert!(!error.contains("hunter2"));
        }
    }
}
