//! Finds an image: which manifest is this platform's, and what it names.

use std::sync::Arc;

use bytes::Bytes;

use crate::endpoint::Endpoint;
use crate::http::Http;
use crate::limits::{ATTEMPTS, DOCUMENT_BYTES, FIRST_WAIT, INDEX_DEPTH};
use crate::manifest::{self, ACCEPT, Manifest, Platform, Unusable};
use crate::{Credentials, Digest, Reference, RegistryError, RegistrySettings};

/// The registries that there are.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    settings: RegistrySettings,
}

/// What a manifest says about one blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub digest: Digest,
    pub size: u64,
}

/// An image that was found; its layers are still where they were.
pub struct Image {
    /// Where they are, in the order to be asked.
    pub(crate) endpoints: Vec<Endpoint>,
    pub config_digest: Digest,
    pub config: Bytes,
    /// From the bottom up.
    pub layers: Vec<Layer>,
}

impl Registry {
    pub fn new(settings: RegistrySettings) -> Self {
        Self { settings }
    }

    /// Asks the mirrors and then the registry. Credentials are the registry's: mirrors never see
    /// them.
    pub async fn find(
        &self,
        reference: &Reference,
        credentials: Option<Credentials>,
        platform: &Platform,
    ) -> Result<Image, RegistryError> {
        let http = Arc::new(Http::new(self.settings.clone())?);
        let mirrors = self.settings.mirrors.iter();
        let mirrors = mirrors.filter(|mirror| mirror.registry == reference.registry());
        let mut endpoints: Vec<Endpoint> = mirrors
            .map(|mirror| Endpoint::new(http.clone(), mirror.host.clone(), reference.clone(), None))
            .collect();
        let own = Endpoint::new(http, reference.host().to_owned(), reference.clone(), credentials);
        endpoints.push(own);
        loop {
            let found = look(&endpoints[0], reference, platform).await;
            match found {
                Ok((config, content, layers)) => {
                    let config_digest = config.digest;
                    return Ok(Image { endpoints, config_digest, config: content, layers });
                }
                Err(error) if endpoints.len() == 1 => return Err(error),
                Err(error) => {
                    let mirror = endpoints.remove(0).host;
                    tracing::warn!(%mirror, image = %reference, %error, "a mirror was of no use");
                }
            }
        }
    }
}

async fn look(
    endpoint: &Endpoint,
    reference: &Reference,
    platform: &Platform,
) -> Result<(Layer, Bytes, Vec<Layer>), RegistryError> {
    let mut wanted = reference.digest().cloned();
    let mut version = reference.version();
    for _ in 0..=INDEX_DEPTH {
        let content =
            document(endpoint, "manifests", &version, "the manifest", wanted.as_ref()).await?;
        let host = endpoint.host.clone();
        match manifest::read(&content, platform) {
            Ok(Manifest::Index { chosen }) => {
                version = chosen.to_string();
                wanted = Some(chosen);
            }
            Ok(Manifest::Image { config, layers }) => {
                let version = config.digest.to_string();
                let digest = Some(&config.digest);
                let content =
                    document(endpoint, "blobs", &version, "the configuration", digest).await?;
                return Ok((config, content, layers));
            }
            Err(Unusable::NoPlatform(available)) => {
                return Err(RegistryError::NoPlatform { wanted: platform.to_string(), available });
            }
            Err(Unusable::Malformed(reason)) => {
                return Err(RegistryError::Malformed { what: "the manifest", host, reason });
            }
        }
    }
    let reason = "its indexes are nested too deeply".to_owned();
    Err(RegistryError::Malformed { what: "the manifest", host: endpoint.host.clone(), reason })
}

/// Reads a small document that must have its digest, if one is known. What passes is tried again.
async fn document(
    endpoint: &Endpoint,
    kind: &str,
    version: &str,
    what: &'static str,
    expected: Option<&Digest>,
) -> Result<Bytes, RegistryError> {
    let (mut attempt, mut wait) = (1, FIRST_WAIT);
    let content = loop {
        let read = async {
            let answer = endpoint.get(&format!("{kind}/{version}"), Some(ACCEPT), 0).await?;
            let said = answer.header("docker-content-digest").and_then(|text| text.parse().ok());
            Ok((answer.read(what, DOCUMENT_BYTES).await?, said))
        };
        match read.await {
            Ok(content) => break content,
            Err(RegistryError::Unreachable { host, reason }) => {
                return Err(RegistryError::Unreachable { host, reason });
            }
            Err(error) if error.is_passing() && attempt < ATTEMPTS => {
                tracing::debug!(%error, attempt, "asking a registry again");
                tokio::time::sleep(wait).await;
                (attempt, wait) = (attempt + 1, wait * 2);
            }
            Err(error) => return Err(error),
        }
    };
    let (content, said): (Vec<u8>, Option<Digest>) = content;
    let actual = Digest::of(&content);
    match expected.cloned().or(said) {
        Some(expected) if expected != actual => {
            Err(RegistryError::WrongDigest { what, expected, actual })
        }
        _ => Ok(content.into()),
    }
}
