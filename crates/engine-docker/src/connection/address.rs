//! Where a Docker Engine listens.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16, files: TlsFiles },
    Ssh(SshTarget),
}

/// What proves the engine to us, and us to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) ca: PathBuf,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl TlsFiles {
    /// By the names that Docker gives them.
    pub(crate) fn below(directory: &std::path::Path) -> Self {
        let at = |name: &str| directory.join(name);
        Self { ca: at("ca.pem"), cert: at("cert.pem"), key: at("key.pem") }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SshTarget {
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// Of the engine's socket there, if it is not the usual one.
    pub(crate) socket: Option<String>,
}

const TCP_PORT: u16 = 2375;
const TLS_PORT: u16 = 2376;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not the address of a Docker Engine: use unix:///path, /path, tcp://host:port or ssh://user@host"
)]
pub(crate) struct NotAnAddress(String);

impl Address {
    /// As in `DOCKER_HOST`; a bare path is a socket's. With `tls`, TCP is not spoken in the clear.
    pub(crate) fn parse(text: &str, tls: Option<TlsFiles>) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(text.chars().take(200).collect());
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            "tcp" | "http" | "https" => {
                let usual = if tls.is_some() { TLS_PORT } else { TCP_PORT };
                let (host, port) = host_and_port(rest).ok_or_else(wrong)?;
                let port = port.unwrap_or(usual);
                match tls {
                    Some(files) => Ok(Self::Tls { host, port, files }),
                    None if scheme == "https" => Err(wrong()),
                    None => Ok(Self::Tcp { host, port }),
                }
            }
            "ssh" => ssh(rest).map(Self::Ssh).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.trim_end_matches('/');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty() && !host.contains('/')).then(|| (host.to_owned(), port))
}

fn ssh(text: &str) -> Option<SshTarget> {
    let (authority, path) = match text.split_once('/') {
        Some((authority, path)) => (authority, Some(path)),
        None => (text, None),
    };
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    let (host, port) = host_and_port(place)?;
    // Neither may be taken for an option of ssh.
    let clean = |word: &str| !word.is_empty() && !word.starts_with('-');
    if !clean(&host) || user.is_some_and(|user| !clean(user)) {
        return None;
    }
    let socket = path.filter(|path| !path.is_empty()).map(|path| format!("/{path}"));
    Some(SshTarget { user: user.map(str::to_owned), host, port, socket })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port } | Self::Tls { host, port, .. } => {
                write!(f, "tcp://{host}:{port}")
            }
            Self::Ssh(SshTarget { user, host, port, socket }) => {
                f.write_str("ssh://")?;
                user.iter().try_for_each(|user| write!(f, "{user}@"))?;
                f.write_str(host)?;
                port.iter().try_for_each(|port| write!(f, ":{port}"))?;
                f.write_str(socket.as_deref().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_docker_cli_reads_them() {
        let unix = Address::Unix("/run/docker.sock".into());
        assert_eq!(Address::parse("unix:///run/docker.sock", None), Ok(unix.clone()));
        assert_eq!(Address::parse("/run/docker.sock", None), Ok(unix));
        let tcp = |port| Ok(Address::Tcp { host: "box".into(), port });
        assert_eq!(Address::parse("tcp://box", None), tcp(2375));
        assert_eq!(Address::parse("tcp://box:99", None), tcp(99));
        let files = TlsFiles::below(std::path::Path::new("/certs"));
        let tls = Address::parse("tcp://[::1]", Some(files.clone()));
        assert_eq!(tls, Ok(Address::Tls { host: "::1".into(), port: 2376, files }));
        let Ok(Address::Ssh(target)) = Address::parse("ssh://me@box:22/run/d.sock", None) else {
            panic!("no ssh");
        };
        let shown = Address::Ssh(target.clone()).to_string();
        assert_eq!(shown, "ssh://me@box:22/run/d.sock");
        assert_eq!((target.user.as_deref(), target.host.as_str()), (Some("me"), "box"));
        assert_eq!((target.port, target.socket.as_deref()), (Some(22), Some("/run/d.sock")));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in
            ["", "box", "unix://run", "tcp://", "https://box", "npipe:////./x", "ssh://-oProxy"]
        {
            assert!(Address::parse(bad, None).is_err(), "{bad:?} was accepted");
        }
    }
}
