//! URLs of repositories: which are taken, and what of them is a secret.

use std::fmt;

use super::super::SeedError;
use super::super::limits::MAX_URL_BYTES;

/// Checked, and without anything secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryUrl {
    text: String,
    kind: Kind,
    /// Scheme and host, where credentials are for.
    scope: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Https,
    Http { loopback: bool },
    Ssh,
}

/// For one host, by HTTP. Prints as nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

impl Credentials {
    /// `x-access-token` and its like are users that only have a token.
    pub fn new(user: &str, password: &str) -> Result<Self, SeedError> {
        let control = |text: &str| text.chars().any(char::is_control);
        if password.is_empty() || control(user) || control(password) {
            return Err(SeedError::Url("its token is empty or has control characters"));
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }
}

impl RepositoryUrl {
    /// With what stands before the `@`, as a secret of its own.
    pub fn parse(url: &str) -> Result<(Self, Option<Credentials>), SeedError> {
        let refused = |why| Err(SeedError::Url(why));
        if url.is_empty() || url.len() > MAX_URL_BYTES {
            return refused("it is empty or too long");
        }
        // What may stand in a URL, without the quote.
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&()*+,;=%".contains(&byte);
        if !url.bytes().all(plain) || url.starts_with('-') {
            return refused("it has characters that do not belong in a URL");
        }
        let lower = url.to_ascii_lowercase();
        if ["%00", "%0a", "%0d"].iter().any(|code| lower.contains(code)) {
            return refused("it has encoded control characters");
        }
        let Some((scheme, rest)) = url.split_once("://") else { return scp_like(url) };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if !is_host(host) || path.is_empty() || path.starts_with('-') {
            return refused("it needs a host and a path, and neither begins with a dash");
        }
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "https" => Kind::Https,
            "http" => Kind::Http { loopback: is_loopback(host) },
            "ssh" => Kind::Ssh,
            _ => return refused("only https, http and ssh are taken"),
        };
        let scheme = scheme.to_ascii_lowercase();
        let scope = format!("{scheme}://{host}");
        if kind == Kind::Ssh {
            let user = match user {
                Some(user) if !is_user(user) => return refused("its user is no name"),
                Some(user) => format!("{user}@"),
                None => String::new(),
            };
            return Ok((Self { text: format!("ssh://{user}{host}/{path}"), kind, scope }, None));
        }
        let credentials = user.map(credentials).transpose()?;
        Ok((Self { text: format!("{scope}/{path}"), kind, scope }, credentials))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a secret may be sent there.
    pub fn accepts_credentials(&self) -> Result<(), SeedError> {
        match self.kind {
            Kind::Https | Kind::Http { loopback: true } => Ok(()),
            Kind::Http { .. } => Err(SeedError::Url(
                "a token is only sent by https; it would be readable on its way",
            )),
            Kind::Ssh => Err(SeedError::Url("a token is only sent by https; ssh has keys")),
        }
    }

    pub(super) fn credential_scope(&self) -> &str {
        &self.scope
    }

    /// As git calls them; redirections and submodules have no others.
    pub(super) fn protocols(&self) -> &'static str {
        match self.kind {
            Kind::Https => "https",
            Kind::Http { .. } => "https:http",
            Kind::Ssh => "https:ssh",
        }
    }
}

/// `git@host:path`.
fn scp_like(url: &str) -> Result<(RepositoryUrl, Option<Credentials>), SeedError> {
    let parts = url.split_once('@').and_then(|(user, rest)| Some((user, rest.split_once(':')?)));
    let Some((user, (host, path))) = parts else {
        return Err(SeedError::Url(
            "it is neither https://…, http://…, ssh://… nor user@host:path",
        ));
    };
    if !is_user(user)
        || !is_host(host)
        || host.contains(':')
        || path.is_empty()
        || path.starts_with('-')
    {
        return Err(SeedError::Url("it is not user@host:path"));
    }
    let scope = format!("ssh://{host}");
    Ok((RepositoryUrl { text: url.to_owned(), kind: Kind::Ssh, scope }, None))
}

fn credentials(user: &str) -> Result<Credentials, SeedError> {
    let (user, password) = user.split_once(':').unwrap_or(("", user));
    let (user, password) = (decoded(user), decoded(password));
    match (user, password) {
        // Where there is only one, it is a token.
        (Some(user), Some(password)) if user.is_empty() => {
            Credentials::new("x-access-token", &password)
        }
        (Some(user), Some(password)) => Credentials::new(&user, &password),
        _ => Err(SeedError::Url("what stands before the @ is not encoded as a URL")),
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn is_user(user: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !user.is_empty() && !user.starts_with('-') && user.bytes().all(plain)
}

/// A name or an address, perhaps with a port.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("v6", rest.strip_prefix(':').or(rest.is_empty().then_some("1")))
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, Some("1")),
        },
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let is_name = !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain);
    is_name && port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost"
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
