//! TLS of both ends of a workspace service. The protocol inside is agreed on: HTTP/2 or 1.1.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Trusts what `authorities` vouches for and nobody else.
pub(crate) fn connector(authorities: &Path) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities)? {
        roots.add(certificate).map_err(|error| named(authorities, error))?;
    }
    if roots.is_empty() {
        return Err(named(authorities, "it holds no certificate"));
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config).into())
}

pub(crate) fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).map_err(io::Error::other)
}

/// Whether a connection failed for the other side's certificate.
pub(crate) fn is_untrusted(error: &io::Error) -> bool {
    matches!(cause(error), Some(rustls::Error::InvalidCertificate(_)))
}

/// Whether the other side said something else altogether.
pub(crate) fn is_no_tls(error: &io::Error) -> bool {
    matches!(cause(error), Some(rustls::Error::InvalidMessage(_)))
}

fn cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|cause| cause.downcast_ref())
}

pub(crate) fn acceptor(chain: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let certificates = certificates(chain)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, error))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| named(chain, error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

fn provider() -> Arc<crypto::CryptoProvider> {
    Arc::new(crypto::ring::default_provider())
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| named(path, error))?;
    read.collect::<Result<_, _>>().map_err(|error| named(path, error))
}

fn named(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{}: {error}", path.display()))
}
