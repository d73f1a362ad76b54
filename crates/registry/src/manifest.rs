//! What a registry says an image is made of.

use std::fmt;

use serde::Deserialize;

use crate::{Digest, Layer};

/// Every form that is understood, OCI's and Docker's.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";

const CONFIGURATIONS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    pub os: &'static str,
    pub architecture: &'static str,
}

impl Platform {
    /// Of sandboxes on this machine.
    pub fn of_this_machine() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { os: "linux", architecture }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<u32>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: Option<String>,
    digest: String,
    size: u64,
    platform: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    os: String,
    architecture: String,
    variant: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// The one for the platform, by digest.
    Index {
        chosen: Digest,
    },
    Image {
        config: Layer,
        layers: Vec<Layer>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    NoPlatform(Vec<String>),
    Malformed(String),
}

fn malformed(reason: impl Into<String>) -> Unusable {
    Unusable::Malformed(reason.into())
}

pub(crate) fn read(content: &[u8], platform: &Platform) -> Result<Manifest, Unusable> {
    let document: Document =
        serde_json::from_slice(content).map_err(|error| malformed(error.to_string()))?;
    if document.schema_version != Some(2) {
        return Err(malformed("it is of a format from before 2016"));
    }
    match (document.manifests, document.config, document.layers) {
        (Some(manifests), None, None) => choose(&manifests, platform),
        (None, Some(config), Some(layers)) => {
            let kind = config.media_type.clone().unwrap_or_default();
            if !CONFIGURATIONS.contains(&kind.as_str()) {
                let kind: String = kind.chars().filter(|c| !c.is_control()).take(100).collect();
                return Err(malformed(format!("it is {kind:?} and no container image")));
            }
            let layers = layers.iter().map(layer).collect::<Result<_, _>>()?;
            Ok(Manifest::Image { config: layer(&config)?, layers })
        }
        // One that is both would be another image for another client.
        _ => Err(malformed("it is neither an image nor an index of images")),
    }
}

fn layer(descriptor: &Descriptor) -> Result<Layer, Unusable> {
    let unsupported = || {
        let digest: String = descriptor.digest.chars().take(80).collect();
        malformed(format!("the digest {digest:?} is not supported"))
    };
    let digest = descriptor.digest.parse().map_err(|()| unsupported())?;
    Ok(Layer { digest, size: descriptor.size })
}

fn choose(manifests: &[Descriptor], platform: &Platform) -> Result<Manifest, Unusable> {
    let fits =
        |named: &Named| named.os == platform.os && named.architecture == platform.architecture;
    let fitting = manifests.iter().find(|each| each.platform.as_ref().is_some_and(fits));
    let Some(fitting) = fitting else {
        let mut available: Vec<String> =
            manifests.iter().filter_map(|each| each.platform.as_ref()).filter_map(shown).collect();
        available.sort();
        available.dedup();
        available.truncate(20);
        return Err(Unusable::NoPlatform(available));
    };
    Ok(Manifest::Index { chosen: layer(fitting)?.digest })
}

/// None for what says what an image was built from.
fn shown(named: &Named) -> Option<String> {
    if named.os == "unknown" {
        return None;
    }
    let Named { os, architecture, variant } = named;
    let variant = variant.as_ref().map_or_else(String::new, |variant| format!("/{variant}"));
    let text = format!("{os}/{architecture}{variant}");
    Some(text.chars().filter(|c| !c.is_control()).take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Platform = Platform { os: "linux", architecture: "amd64" };

    fn descriptor(kind: &str, digit: char, more: &str) -> String {
        let digest = digit.to_string().repeat(64);
        format!(r#"{{"mediaType":"{kind}","digest":"sha256:{digest}","size":7{more}}}"#)
    }

    fn image() -> String {
        let config = descriptor(CONFIGURATIONS[0], '1', "");
        let layer = descriptor("application/vnd.oci.image.layer.v1.tar", '2', "");
        format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{layer}]}}"#)
    }

    fn index(platforms: &[&str]) -> String {
        let entries: Vec<String> = platforms
            .iter()
            .enumerate()
            .map(|(number, platform)| {
                let (os, architecture) = platform.split_once('/').unwrap();
                let more =
                    format!(r#","platform":{{"os":"{os}","architecture":"{architecture}"}}"#);
                descriptor("x", char::from(b'0' + number as u8), &more)
            })
            .collect();
        format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, entries.join(","))
    }

    #[test]
    fn an_image_and_the_fitting_one_of_an_index_are_understood() {
        let Ok(Manifest::Image { config, layers }) = read(image().as_bytes(), &HERE) else {
            panic!("no image")
        };
        assert_eq!((config.size, layers.len()), (7, 1));
        let index = index(&["linux/arm64", "linux/amd64", "unknown/unknown"]);
        let chosen = format!("sha256:{}", "1".repeat(64)).parse().unwrap();
        assert_eq!(read(index.as_bytes(), &HERE), Ok(Manifest::Index { chosen }));
    }

    #[test]
    fn an_index_without_this_platform_lists_those_it_has() {
        let index = index(&["linux/s390x", "windows/amd64", "unknown/unknown", "linux/arm64"]);
        let has = ["linux/arm64", "linux/s390x", "windows/amd64"].map(str::to_owned).to_vec();
        assert_eq!(read(index.as_bytes(), &HERE), Err(Unusable::NoPlatform(has)));
    }

    #[test]
    fn what_two_clients_could_understand_differently_is_refused() {
        let both = image().replacen('{', r#"{"manifests":[],"#, 1);
        let twice = image().replacen('{', r#"{"schemaVersion":2,"#, 1);
        let chart = image().replace(CONFIGURATIONS[0], "application/vnd.cncf.helm.config.v1+json");
        let other = image().replace("sha256:222", "sha512:222");
        let old = image().replace("\"schemaVersion\":2", "\"schemaVersion\":1");
        for bad in [both.as_str(), &twice, &chart, &other, &old, "", "{}", "[]", "null"] {
            let read = read(bad.as_bytes(), &HERE);
            assert!(matches!(read, Err(Unusable::Malformed(_))), "{bad}: {read:?}");
        }
    }
}
