//! A client of OCI registries: finds the image for a platform and downloads what it is made of.
//!
//! A registry's answers are hostile input: each is bounded, waited for with a deadline, and
//! believed only if it has the digest that was asked for. What a layer holds is not this crate's
//! concern. There is one HTTP client and one TLS implementation in it, and no container library:
//! those that exist read manifests of any size into memory.

mod challenge;
mod digest;
mod docker_config;
mod download;
mod endpoint;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod image;
mod limits;
mod manifest;
mod pace;
mod reference;
mod settings;

pub use digest::Digest;
pub use docker_config::{CredentialsError, DockerConfig};
pub use download::Room;
pub use error::RegistryError;
pub use image::{Image, Layer, Registry};
pub use limits::CONCURRENT_DOWNLOADS;
pub use manifest::Platform;
pub use reference::{InvalidReference, Reference};
pub use settings::{InvalidMirror, Mirror, RegistrySettings};

/// A name and a password, or a token in its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:[redacted]", self.username)
    }
}
