//! Layers and the documents about them.

use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) fn digest(content: &[u8]) -> String {
    let hex: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

pub(crate) fn machine() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// A layer, as it was and as it is sent.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) tar: Vec<u8>,
    pub(crate) blob: Vec<u8>,
}

impl Layer {
    pub(crate) fn new(fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Self {
        let mut builder = tar::Builder::new(Vec::new());
        fill(&mut builder);
        Self::of(builder.into_inner().unwrap())
    }

    pub(crate) fn of(tar: Vec<u8>) -> Self {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &tar).unwrap();
        Self { tar, blob: encoder.finish().unwrap() }
    }

    /// A file with this text.
    pub(crate) fn text(path: &str, text: &str) -> Self {
        Self::new(|tar| put(tar, path, text.as_bytes(), 0o644))
    }

    /// A file of bytes that no compression makes smaller.
    pub(crate) fn noise(path: &str, bytes: usize, seed: u64) -> Self {
        let mut state = seed | 1;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        })
        .take(bytes)
        .collect();
        Self::new(|tar| put(tar, path, &noise, 0o644))
    }

    /// This machine's `cat`, with what it is linked to.
    pub(crate) fn cat() -> Self {
        let linked = Command::new("ldd").arg("/usr/bin/cat").output().unwrap();
        let linked = String::from_utf8(linked.stdout).unwrap();
        let libraries = linked.split_whitespace().filter(|word| word.starts_with('/'));
        Self::new(|tar| {
            for path in ["/usr/bin/cat"].into_iter().chain(libraries) {
                put(tar, path.trim_start_matches('/'), &std::fs::read(path).unwrap(), 0o755);
            }
        })
    }

    pub(crate) fn digest(&self) -> String {
        digest(&self.blob)
    }
}

pub(crate) fn put(tar: &mut tar::Builder<Vec<u8>>, path: &str, content: &[u8], mode: u32) {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_700_000_000);
    tar.append_data(&mut header, path, content).unwrap();
}

pub(crate) fn configuration(architecture: &str, layers: &[Layer]) -> Vec<u8> {
    let diffs: Vec<String> = layers.iter().map(|layer| digest(&layer.tar)).collect();
    let config = json!({ "architecture": architecture, "os": "linux",
        "config": { "Env": ["GREETING=hello"] }, "rootfs": { "type": "layers", "diff_ids": diffs } });
    serde_json::to_vec(&config).unwrap()
}

pub(crate) fn manifest(config: &[u8], layers: &[Layer]) -> Value {
    let layers: Vec<Value> = layers
        .iter()
        .map(|layer| {
            json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": layer.digest(), "size": layer.blob.len() })
        })
        .collect();
    json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": digest(config), "size": config.len() },
        "layers": layers })
}

/// As `docker save` writes it, under a name that is somebody else's.
pub(crate) fn saved(architecture: &str, layer: &Layer) -> Vec<u8> {
    let manifest = json!([{ "Config": "c.json", "RepoTags": ["sandbank-test:latest"],
        "Layers": ["layer.tar"] }]);
    let layers = std::slice::from_ref(layer);
    let mut tar = tar::Builder::new(Vec::new());
    put(&mut tar, "manifest.json", manifest.to_string().as_bytes(), 0o644);
    put(&mut tar, "c.json", &configuration(architecture, layers), 0o644);
    put(&mut tar, "layer.tar", &layer.blob, 0o644);
    tar.into_inner().unwrap()
}
