//! TLS with the files that Docker's own tools use: an authority, a certificate and a key.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore, crypto};

use super::address::TlsFiles;

pub(crate) struct Connector {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Connector {
    pub(crate) fn new(host: &str, files: &TlsFiles) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&files.ca)? {
            roots.add(certificate).map_err(|error| named(&files.ca, error))?;
        }
        let chain = certificates(&files.cert)?;
        let key =
            PrivateKeyDer::from_pem_file(&files.key).map_err(|error| named(&files.key, error))?;
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| named(&files.cert, error))?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Self { connector: Arc::new(config).into(), name })
    }

    pub(crate) async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), stream).await
    }
}

/// What to do about an error that is TLS's own. An engine that does not take our certificate says so
/// after the handshake, and may hang up before that is read.
pub(super) fn next_step(error: &io::Error) -> Option<&'static str> {
    let not_accepted = "it does not accept our certificate: cert.pem must be signed by an authority \
                        that the engine knows (--tlscacert)";
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_)) => Some(
            "the certificate of who answers there is not one that ca.pem vouches for under this \
             host's name: take the ca.pem of that engine",
        ),
        Some(Error::AlertReceived(_)) => Some(not_accepted),
        Some(Error::InvalidMessage(_)) => {
            Some("it does not speak TLS: check the port, or unset DOCKER_TLS_VERIFY")
        }
        _ => match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Some(
                "it hung up: it has just ended, or it does not accept our certificate, cert.pem",
            ),
            _ => None,
        },
    }
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| named(path, error))?;
    read.collect::<Result<_, _>>().map_err(|error| named(path, error))
}

fn named(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{}: {error}", path.display()))
}
