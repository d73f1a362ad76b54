//! What an archive says about its image: which layers, for which machine, with which environment.

use std::collections::BTreeMap;

use sandbank_engine::EngineError;
use serde::Deserialize;

use crate::limits::{ENV_BYTES, ENV_VARIABLES, INDEX_DEPTH};
use crate::{Archive, Format, Member, bad};

/// Layers from the bottom up, each with the digest its uncompressed form must have.
#[derive(Debug)]
pub struct Plan {
    pub layers: Vec<(Member, Option<String>)>,
    /// Where the configuration is; a root file system has none.
    pub config: Option<Member>,
    /// Of the configuration.
    pub digest: Option<String>,
    pub env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct DockerManifest {
    #[serde(rename = "Config")]
    config: String,
    #[serde(rename = "Layers", default)]
    layers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Configuration {
    architecture: Option<String>,
    os: Option<String>,
    config: Option<ContainerConfig>,
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct ContainerConfig {
    #[serde(rename = "Env")]
    env: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// An OCI index has `manifests`, an image manifest `config` and `layers`.
#[derive(Deserialize)]
struct OciDocument {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

/// For the machine that the image is to run on, as configurations name it.
pub fn plan(archive: &Archive, machine: &str) -> Result<Plan, EngineError> {
    match archive.format {
        Format::Rootfs => Ok(Plan {
            layers: vec![(archive.whole(), None)],
            config: None,
            digest: None,
            env: BTreeMap::new(),
        }),
        Format::DockerSave => {
            let (manifests, _) = archive.read_json::<Vec<DockerManifest>>("manifest.json")?;
            let [manifest] = <[_; 1]>::try_from(manifests)
                .map_err(|all| bad(format!("it holds {} images; save one", all.len())))?;
            let layers = manifest.layers.unwrap_or_default();
            configured(archive, &manifest.config, layers, machine)
        }
        Format::OciLayout => oci(archive, "index.json", INDEX_DEPTH, machine),
    }
}

fn blob(digest: &str) -> Result<String, EngineError> {
    match digest.strip_prefix("sha256:") {
        Some(hex) if is_sha256(hex) => Ok(format!("blobs/sha256/{hex}")),
        _ => Err(bad(format!("the digest {digest:?} is not supported"))),
    }
}

fn is_sha256(hex: &str) -> bool {
    hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn oci(archive: &Archive, name: &str, depth: u32, machine: &str) -> Result<Plan, EngineError> {
    let (document, _) = archive.read_json::<OciDocument>(name)?;
    if let Some(config) = document.config {
        let layers = document.layers.unwrap_or_default();
        let layers = layers.iter().map(|layer| blob(&layer.digest)).collect::<Result<_, _>>()?;
        return configured(archive, &blob(&config.digest)?, layers, machine);
    }
    let depth = depth.checked_sub(1).ok_or_else(|| bad("its indexes are nested too deeply"))?;
    let manifests = document.manifests.unwrap_or_default();
    let mut fitting: Vec<_> = manifests.iter().filter(|entry| entry.fits(machine)).collect();
    fitting.dedup_by(|a, b| a.digest == b.digest);
    match fitting.as_slice() {
        [one] => oci(archive, &blob(&one.digest)?, depth, machine),
        [] => Err(bad(format!("it has no image for linux/{machine}"))),
        several => Err(bad(format!("it holds {} images; export one", several.len()))),
    }
}

impl Descriptor {
    /// One that names no platform is judged by its configuration.
    fn fits(&self, machine: &str) -> bool {
        let platform = self.platform.as_ref();
        platform.is_none_or(|p| p.os == "linux" && p.architecture == machine)
    }
}

pub fn configured(
    archive: &Archive,
    name: &str,
    layers: Vec<String>,
    machine: &str,
) -> Result<Plan, EngineError> {
    let (configuration, digest) = archive.read_json::<Configuration>(name)?;
    let architecture = configuration.architecture.as_deref().unwrap_or(machine);
    let os = configuration.os.as_deref().unwrap_or("linux");
    if (os, architecture) != ("linux", machine) {
        return Err(bad(format!(
            "it is for {os}/{architecture}, not for linux/{machine}: import it on such a machine, \
             or have it made for this one"
        )));
    }
    let diff_ids = configuration.rootfs.diff_ids.unwrap_or_default();
    if layers.is_empty() || layers.len() != diff_ids.len() {
        return Err(bad(format!("it has {} layers and {} digests", layers.len(), diff_ids.len())));
    }
    let mut planned = Vec::with_capacity(layers.len());
    for (layer, diff_id) in layers.iter().zip(diff_ids) {
        let expected = diff_id.strip_prefix("sha256:").filter(|hex| is_sha256(hex));
        let expected =
            expected.ok_or_else(|| bad(format!("the digest {diff_id:?} is not supported")))?;
        planned.push((archive.member(layer)?, Some(expected.to_owned())));
    }
    let env = configuration.config.and_then(|config| config.env).unwrap_or_default();
    let config = Some(archive.member(name)?);
    Ok(Plan { layers: planned, config, digest: Some(digest), env: environment(env) })
}

/// The image's variables, without those that say who the user is: that is ours to say.
fn environment(env: Vec<String>) -> BTreeMap<String, String> {
    const OURS: [&str; 5] = ["HOME", "USER", "LOGNAME", "PWD", "SHELL"];
    env.into_iter()
        .take(ENV_VARIABLES)
        .filter(|variable| variable.len() <= ENV_BYTES && !variable.contains('\0'))
        .filter_map(|variable| {
            let (name, value) = variable.split_once('=')?;
            let usable = !name.is_empty() && !OURS.contains(&name);
            usable.then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_keeps_paths_and_leaves_the_user_to_us() {
        let env = ["PATH=/opt/bin:/bin", "HOME=/root", "EMPTY=", "=x", "none", "A=b=c"];
        let env = environment(env.map(str::to_owned).to_vec());
        let kept: Vec<_> =
            env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(kept, [("A", "b=c"), ("EMPTY", ""), ("PATH", "/opt/bin:/bin")]);
    }
}
