//! Fuzz targets: what a registry says, and what people call its images.

use crate::challenge::{self, Challenge};
use crate::manifest::{self, Manifest, Platform};
use crate::{Mirror, Reference};

/// Read as everything that is read of a registry without its digest being known before.
pub fn answers(data: &[u8]) {
    let platform = Platform { os: "linux", architecture: "amd64" };
    if let Ok(Manifest::Image { config, layers }) = manifest::read(data, &platform) {
        for layer in layers.iter().chain([&config]) {
            assert_eq!(layer.digest.hex().len(), 64);
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(Challenge::Bearer { realm, .. }) = challenge::parse(text) {
        assert!(text.contains(&realm));
    }
    if let Ok(reference) = text.parse::<Reference>() {
        let again: Reference = reference.to_string().parse().expect("it was written by us");
        assert_eq!(again.to_string(), reference.to_string());
        let uri = format!("https://{}/v2/{}/", reference.registry(), reference.repository());
        let uri: http::Uri = uri.parse().expect("a reference is part of an address");
        assert_eq!(uri.authority().map(|host| host.as_str()), Some(reference.registry()));
        assert!(uri.query().is_none());
    }
    if let Ok(mirror) = text.parse::<Mirror>() {
        assert!(format!("https://{}/", mirror.host).parse::<http::Uri>().is_ok());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_answers_are_handled() {
        sandbank_test_support::replay_corpus("answers", super::answers);
    }
}
