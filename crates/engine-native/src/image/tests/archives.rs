//! Makes archives, also ones that no tool would make.

use std::io::Write;

use sandbank_engine::sha256_hex;
use sandbank_image_archive::machine;
use serde_json::json;
use tar::{EntryType, Header};

pub(super) struct Tar(Vec<u8>);

/// An entry that says exactly what it is told to.
pub(super) fn header(kind: EntryType, path: &[u8], size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    let name = &mut header.as_mut_bytes()[..100];
    name[..path.len().min(100)].copy_from_slice(&path[..path.len().min(100)]);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_700_000_000);
    header.set_cksum();
    header
}

impl Tar {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn raw(mut self, header: &Header, content: &[u8]) -> Self {
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(super) fn changed(
        self,
        kind: EntryType,
        path: &str,
        content: &[u8],
        change: impl FnOnce(&mut Header),
    ) -> Self {
        let mut header = header(kind, path.as_bytes(), content.len() as u64);
        change(&mut header);
        header.set_cksum();
        self.raw(&header, content)
    }

    pub(super) fn file(self, path: &str, content: &[u8]) -> Self {
        self.changed(EntryType::Regular, path, content, |_| {})
    }

    pub(super) fn program(self, path: &str, content: &[u8]) -> Self {
        self.changed(EntryType::Regular, path, content, |header| header.set_mode(0o755))
    }

    pub(super) fn dir(self, path: &str) -> Self {
        self.changed(EntryType::Directory, path, b"", |header| header.set_mode(0o755))
    }

    pub(super) fn link(self, path: &str, target: &str) -> Self {
        self.changed(EntryType::Symlink, path, b"", |header| {
            header.set_link_name_literal(target).unwrap();
        })
    }

    pub(super) fn hardlink(self, path: &str, target: &str) -> Self {
        self.changed(EntryType::Link, path, b"", |header| {
            header.set_link_name_literal(target).unwrap();
        })
    }

    pub(super) fn pax(self, records: &[(&str, &str)]) -> Self {
        let mut content = Vec::new();
        for (key, value) in records {
            let rest = format!(" {key}={value}\n");
            let mut length = rest.len() + 1;
            while length.to_string().len() + rest.len() != length {
                length += 1;
            }
            content.extend_from_slice(format!("{length}{rest}").as_bytes());
        }
        let header = header(EntryType::XHeader, b"pax", content.len() as u64);
        self.raw(&header, &content)
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }

    /// Without the two blocks that mark the end.
    pub(super) fn unfinished(self) -> Vec<u8> {
        self.0
    }
}

/// A root file system that looks like one.
pub(super) fn small_root() -> Tar {
    Tar::new()
        .dir("./")
        .dir("./etc/")
        .file(
            "./etc/passwd",
            b"root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n",
        )
        .dir("./bin")
        .program("./bin/tool", b"#!/bin/sh\n")
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    sha256_hex(bytes)
}

pub(super) struct Saved {
    pub(super) architecture: &'static str,
    pub(super) diff_ids: Vec<String>,
    /// As stored: plain or compressed.
    pub(super) layers: Vec<Vec<u8>>,
}

impl Saved {
    pub(super) fn of(layers: &[&[u8]]) -> Self {
        Self {
            architecture: machine(),
            diff_ids: layers.iter().map(|layer| format!("sha256:{}", sha256(layer))).collect(),
            layers: layers.iter().map(|layer| layer.to_vec()).collect(),
        }
    }

    fn configuration(&self) -> Vec<u8> {
        serde_json::to_vec(&json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/opt/bin:/usr/bin:/bin", "HOME=/root", "LANG=C"]},
            "rootfs": {"type": "layers", "diff_ids": self.diff_ids},
        }))
        .unwrap()
    }

    /// As `docker save` did before it took up the OCI layout: the manifest comes last.
    pub(super) fn docker(&self) -> Tar {
        let configuration = self.configuration();
        let config = format!("{}.json", sha256(&configuration));
        let mut tar = Tar::new().file(&config, &configuration);
        let mut names: Vec<String> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let name = format!("{index:064}/layer.tar");
            let same = self.layers[..index].iter().position(|earlier| earlier == layer);
            tar = match same {
                Some(same) => tar.link(&name, &format!("../{same:064}/layer.tar")),
                None => tar.file(&name, layer),
            };
            names.push(name);
        }
        let manifest = json!([{"Config": config, "RepoTags": ["a:b"], "Layers": names}]);
        tar.file("manifest.json", manifest.to_string().as_bytes())
    }

    pub(super) fn oci(&self) -> Tar {
        let mut tar = Tar::new().file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);
        let mut add = |content: &[u8]| {
            let digest = sha256(content);
            let taken = std::mem::replace(&mut tar, Tar::new());
            tar = taken.file(&format!("blobs/sha256/{digest}"), content);
            json!({"digest": format!("sha256:{digest}"), "size": content.len()})
        };
        let layers: Vec<_> = self.layers.iter().map(|layer| add(layer)).collect();
        let config = add(&self.configuration());
        let manifest = add(json!({"config": config, "layers": layers}).to_string().as_bytes());
        let with = |os: &str, architecture: &str, mut descriptor: serde_json::Value| {
            descriptor["platform"] = json!({"os": os, "architecture": architecture});
            descriptor
        };
        let other = json!({"digest": format!("sha256:{:064}", 0), "size": 1});
        let manifests = [
            with("linux", "other", other.clone()),
            with("linux", self.architecture, manifest),
            with("unknown", "unknown", other),
        ];
        let inner = add(json!({"manifests": manifests}).to_string().as_bytes());
        tar.file("index.json", json!({"manifests": [inner]}).to_string().as_bytes())
    }
}
