//! Archives made in the test, honest and hostile.

use std::path::Path;

use sandbank_engine::sha256_hex;
use sandbank_test_support::{literal_entry as entry, literal_tar};
use serde_json::{Value, json};
use tar::EntryType;

fn machine() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

pub(crate) fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let file = |(path, content): &(&str, &[u8])| entry(EntryType::Regular, path, "", content);
    literal_tar(&files.iter().map(file).collect::<Vec<_>>())
}

/// What makes an archive look like a root file system.
pub(crate) fn root<'a>() -> Vec<(&'a str, &'a [u8])> {
    vec![("etc/motd", b"hello")]
}

pub(crate) fn leading_out() -> Vec<u8> {
    tar_of(&[("etc/motd", b"hello"), ("../../../../../../../../tmp/canary", b"spoilt")])
}

/// Layers that would write to a file `canary` in `outside`, if links were followed.
pub(crate) fn links_to(outside: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let place = outside.to_str().unwrap();
    let canary = format!("{place}/canary");
    let file = |path: &str| entry(EntryType::Regular, path, "", b"spoilt");
    let motd = || entry(EntryType::Regular, "etc/motd", "", b"hello");
    let up = format!("{}{place}", "../".repeat(20));
    vec![
        (
            "a link",
            literal_tar(&[
                motd(),
                entry(EntryType::Symlink, "way", place, b""),
                file("way/canary"),
            ]),
        ),
        (
            "a link up",
            literal_tar(&[motd(), entry(EntryType::Symlink, "way", &up, b""), file("way/canary")]),
        ),
        (
            "a file's link",
            literal_tar(&[motd(), entry(EntryType::Symlink, "own", &canary, b""), file("own")]),
        ),
        (
            "a hard link",
            literal_tar(&[motd(), entry(EntryType::Link, "own", &canary, b""), file("own")]),
        ),
        (
            "a whiteout",
            literal_tar(&[
                motd(),
                entry(EntryType::Symlink, "way", place, b""),
                file("way/.wh.canary"),
            ]),
        ),
    ]
}

/// One image with its layers, whose digests are those of the layers that it was made with.
pub(crate) struct Saved {
    pub(crate) architecture: &'static str,
    pub(crate) layers: Vec<Vec<u8>>,
    diff_ids: Vec<String>,
}

impl Saved {
    /// Of compressed layers, what they uncompress to counts.
    pub(crate) fn new(layers: &[&[u8]]) -> Self {
        let plain = |layer: &&[u8]| zstd::decode_all(*layer).unwrap_or_else(|_| layer.to_vec());
        let diff_ids = layers.iter().map(|l| format!("sha256:{}", sha256_hex(&plain(l)))).collect();
        let layers = layers.iter().map(|layer| layer.to_vec()).collect();
        Self { architecture: machine(), layers, diff_ids }
    }

    fn config(&self) -> Vec<u8> {
        let config = json!({ "architecture": self.architecture, "os": "linux",
            "config": { "Env": ["WHO=me"] },
            "rootfs": { "type": "layers", "diff_ids": self.diff_ids } });
        config.to_string().into_bytes()
    }

    pub(crate) fn docker(&self) -> Vec<u8> {
        let names: Vec<String> = (0..self.layers.len()).map(|at| format!("{at}.tar")).collect();
        let tags = ["taken:latest", "taken:too"];
        let manifest = json!([{ "Config": "c.json", "RepoTags": tags, "Layers": names }]);
        let (config, manifest) = (self.config(), manifest.to_string());
        let mut files: Vec<(&str, &[u8])> =
            vec![("c.json", &config), ("manifest.json", manifest.as_bytes())];
        files.extend(names.iter().zip(&self.layers).map(|(name, layer)| (&**name, &layer[..])));
        tar_of(&files)
    }

    pub(crate) fn oci(&self) -> Vec<u8> {
        let mut blobs: Vec<(String, Vec<u8>)> = Vec::new();
        let mut add = |content: Vec<u8>| -> Value {
            let (digest, size) = (sha256_hex(&content), content.len());
            blobs.push((format!("blobs/sha256/{digest}"), content));
            json!({ "digest": format!("sha256:{digest}"), "size": size })
        };
        let config = add(self.config());
        let layers: Vec<Value> = self.layers.iter().map(|layer| add(layer.clone())).collect();
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": layers });
        let mut entry = add(manifest.to_string().into_bytes());
        entry["platform"] = json!({ "os": "linux", "architecture": self.architecture });
        entry["annotations"] =
            json!({ "io.containerd.image.name": "docker.io/library/taken:latest" });
        let index = json!({ "schemaVersion": 2, "manifests": [entry] }).to_string();
        let layout = json!({ "imageLayoutVersion": "1.0.0" }).to_string();
        let mut files: Vec<(&str, &[u8])> =
            vec![("oci-layout", layout.as_bytes()), ("index.json", index.as_bytes())];
        files.extend(blobs.iter().map(|(name, content)| (&**name, &content[..])));
        tar_of(&files)
    }
}
