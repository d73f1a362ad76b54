//! The image `host`: this machine's `/usr`, read-only, below a synthetic `/etc`.
//!
//! Only what programs need to run is taken from the host's `/etc`, by name: the dynamic linker's
//! cache, certificates, alternatives and the like. Nothing that says who the host is or may hold
//! a secret is named here, and a file that not everyone may read is left out.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sandbank_engine::{EngineError, hex};
use sha2::{Digest, Sha256};

use super::limits::HOST_FILE_BYTES;
use super::skeleton::{self, Builder};
use super::{Bind, accounts};

/// In the root: links are made anew, real directories are bound.
const ROOT: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// In `/etc`: links are made anew, files copied, directories bound.
const ETC: [&str; 47] = [
    "DIR_COLORS",
    "alpine-release",
    "alternatives",
    "arch-release",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "ethertypes",
    "fedora-release",
    "fonts",
    "gai.conf",
    "gprofng.rc",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "magic.mime",
    "manpath.config",
    "mime.types",
    "netconfig",
    "networks",
    "os-release",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "redhat-release",
    "rpc",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "system-release",
    "terminfo",
    "timezone",
    "vim",
    "xattr.conf",
];

/// Names in `/etc` that carry a version.
const ETC_PREFIXES: [&str; 3] = ["java-", "ld-musl-", "python3"];

const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n\
                        networks: files\nprotocols: files\nservices: files\n";

/// A login shell keeps the PATH it was started with.
const PROFILE: &str = r#"# Read by login shells.
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
umask 022
if [ -n "${BASH_VERSION-}" ] && [ -n "${PS1-}" ]; then . /etc/bash.bashrc; fi
"#;

const BASHRC: &str = r#"# Read by interactive shells.
[ -z "${PS1-}" ] && return
shopt -s checkwinsize
PS1='\u@\h:\w\$ '
"#;

/// One thing of the host that the image takes over.
struct Piece {
    /// Where it is in the root, without a leading slash.
    path: String,
    source: PathBuf,
    metadata: Metadata,
    target: Option<PathBuf>,
}

/// What the image is made of right now. Cheap: a stat for each name.
pub(super) struct HostPieces {
    pieces: Vec<Piece>,
}

impl HostPieces {
    /// `root` is `/`, except in tests.
    pub(super) fn look_in(root: &Path) -> Self {
        let mut versioned: Vec<String> = std::fs::read_dir(root.join("etc"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| ETC_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
            .collect();
        versioned.sort();
        let etc = ETC.iter().copied().chain(versioned.iter().map(String::as_str));
        let names = ROOT.iter().map(|name| (*name).to_owned());
        let names = names.chain(etc.map(|name| format!("etc/{name}")));
        Self { pieces: names.filter_map(|path| piece(root, path)).collect() }
    }

    /// Changes whenever a skeleton made of these pieces would.
    pub(super) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(skeleton::VERSION.to_le_bytes());
        for Piece { path, metadata, target, .. } in &self.pieces {
            hash.update(path.as_bytes());
            hash.update([0]);
            if let Some(target) = target {
                hash.update(target.as_os_str().as_encoded_bytes());
            }
            hash.update([u8::from(metadata.is_dir())]);
            if metadata.is_file() {
                let time = [metadata.mtime(), metadata.mtime_nsec()];
                hash.update(metadata.ino().to_le_bytes());
                hash.update(metadata.len().to_le_bytes());
                hash.update(time[0].to_le_bytes());
                hash.update(time[1].to_le_bytes());
            }
        }
        hex(&hash.finalize()[..16])
    }

    /// Directories of the host to bind, parents first.
    pub(super) fn binds(&self) -> Vec<Bind> {
        let bound = self.pieces.iter().filter(|piece| piece.metadata.is_dir());
        let mut binds: Vec<Bind> = bound
            .map(|piece| Bind {
                source: piece.source.clone(),
                target: Path::new("/").join(&piece.path),
            })
            .collect();
        binds.sort_by(|a, b| a.target.cmp(&b.target));
        binds
    }

    pub(super) fn build(&self, root: &Path) -> Result<(), EngineError> {
        let builder = Builder::new(root)?;
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        builder.base(&accounts::passwd("", shell), &accounts::group(""))?;
        builder.directory("root", 0o700)?;
        for name in ["mnt", "opt", "srv"] {
            builder.directory(name, 0o755)?;
        }
        builder.file("etc/nsswitch.conf", NSSWITCH.as_bytes())?;
        builder.file("etc/profile", PROFILE.as_bytes())?;
        builder.file("etc/bash.bashrc", BASHRC.as_bytes())?;
        for piece in &self.pieces {
            let path = piece.path.as_str();
            match &piece.target {
                Some(target) => builder.link(path, target)?,
                None if piece.metadata.is_dir() => builder.directory(path, 0o755)?,
                // Gone since it was looked at: the next look sees that.
                None => match std::fs::read(&piece.source) {
                    Ok(content) => builder.file(path, &content)?,
                    Err(error) => tracing::debug!(%error, path, "left out of the host image"),
                },
            }
        }
        Ok(())
    }
}

/// None for what is not there, is not for everyone's eyes, or is no link, file or directory.
fn piece(root: &Path, path: String) -> Option<Piece> {
    let source = root.join(&path);
    let metadata = std::fs::symlink_metadata(&source).ok()?;
    let mode = metadata.permissions().mode();
    if metadata.is_symlink() {
        let target = std::fs::read_link(&source).ok()?;
        return Some(Piece { path, source, metadata, target: Some(target) });
    }
    let fits = metadata.is_dir() && mode & 0o005 == 0o005
        || metadata.is_file() && mode & 0o004 != 0 && metadata.len() <= HOST_FILE_BYTES;
    fits.then_some(Piece { path, source, metadata, target: None })
}
