//! Why an image cannot be had from a registry, each with what to do next.

use std::time::Duration;

use crate::limits::COMPLAINT_CHARS;
use crate::{Digest, Reference};

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{host} cannot be reached: {reason}")]
    Unreachable { host: String, reason: String },
    #[error("{host} sent nothing for {}", seconds(.waited))]
    Stalled { host: String, waited: Duration },
    #[error("{host} sent only {bytes} bytes in {}", seconds(.waited))]
    Slow { host: String, bytes: u64, waited: Duration },
    #[error("{host} broke off: {reason}")]
    Broken { host: String, reason: String },
    #[error("{host} answered {status}{complaint}")]
    Refused { host: String, status: u16, complaint: String },
    #[error("{host} does not let us read {repository}: {}", refused_as(*.known))]
    Unauthorized { host: String, repository: String, known: bool },
    #[error("there is no {reference} in the registry")]
    NotFound { reference: Box<Reference> },
    #[error("it has no image for {wanted}, only for {}", list(.available))]
    NoPlatform { wanted: String, available: Vec<String> },
    #[error("{what} is {actual}, not {expected} as it was asked for")]
    WrongDigest { what: &'static str, expected: Digest, actual: Digest },
    #[error("{what} has {actual} bytes, not {expected} as its manifest says")]
    WrongSize { what: &'static str, expected: u64, actual: String },
    #[error("{what} of {host} has more than {limit} bytes")]
    TooLarge { what: &'static str, host: String, limit: u64 },
    #[error("{what} of {host} is not understood: {reason}")]
    Malformed { what: &'static str, host: String, reason: String },
    #[error("{host} wants to go on at {target}, without TLS")]
    WithoutTls { host: String, target: String },
    #[error("{host} wants to go on at {target}, which only this machine itself can reach")]
    Inside { host: String, target: String },
    #[error("the certificates of this machine cannot be read: {0}")]
    NoCertificates(std::io::Error),
    #[error("failed to write a layer: {0}")]
    Write(std::io::Error),
}

fn refused_as(known: bool) -> &'static str {
    if known { "the credentials are not accepted" } else { "it wants credentials" }
}

fn list(available: &[String]) -> String {
    if available.is_empty() { "none that is named".to_owned() } else { available.join(", ") }
}

fn seconds(waited: &Duration) -> String {
    format!("{} s", waited.as_secs_f64())
}

impl RegistryError {
    /// Whether trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Stalled { .. }
            | Self::Slow { .. }
            | Self::Broken { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreachable { reason, .. } if reason.contains("certificate") => {
                "if you trust it, add its certificate authority to this machine's: \
                 update-ca-certificates"
                    .to_owned()
            }
            Self::Unreachable { host, .. } => format!(
                "check the name and this machine's network; a registry without TLS must be named in \
                 images.insecure_registries: {host}"
            ),
            Self::Stalled { .. } | Self::Slow { .. } | Self::Broken { .. } => {
                "pull it again: nothing of it was kept".to_owned()
            }
            Self::Refused { status: 429, .. } => {
                "wait, log in with `docker login`, or name a mirror in images.mirrors".to_owned()
            }
            Self::Refused { .. } => "ask whoever runs the registry, or pull it again later".to_owned(),
            Self::Unauthorized { host, .. } => format!(
                "check the name, then log in with `docker login {host}`: its credentials are used"
            ),
            Self::NotFound { .. } => "check the name and the tag".to_owned(),
            Self::NoPlatform { wanted, .. } => {
                format!("choose another tag, or build the image for {wanted}")
            }
            Self::WrongDigest { .. } | Self::WrongSize { .. } => {
                "do not use it: the registry or something before it is damaged; tell whoever runs it".to_owned()
            }
            Self::TooLarge { .. } | Self::Malformed { .. } => {
                "it is no container image that can be used here; choose another".to_owned()
            }
            Self::WithoutTls { target, .. } => {
                format!("if you trust the way there, name {target} in images.insecure_registries")
            }
            Self::Inside { target, .. } => format!(
                "do not use it: no registry has business there; if it is yours, name {target} in \
                 images.insecure_registries"
            ),
            Self::NoCertificates(_) => "install them: apt-get install ca-certificates".to_owned(),
            Self::Write(_) => "make room on the disk, then pull it again".to_owned(),
        }
    }
}

/// A registry's own words: on one line, and not many.
pub(crate) fn clipped(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.take(COMPLAINT_CHARS).collect()
}
