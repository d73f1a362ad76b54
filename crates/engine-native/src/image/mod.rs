//! Images: what a machine's root file system is made of.
//!
//! An imported image is a stack of layers, each unpacked once into a directory named by the
//! sha-256 of its uncompressed tar and shared by every image that has it. On top of them lies a
//! skeleton of our own. The image `host` is a skeleton alone, with the host's `/usr` bound into
//! it. Archives are hostile input; see `unpack`.
//!
//! ```text
//! <dir>/names/<name>.json     what a name stands for now
//! <dir>/replaced/<id>.json    what it stood for while machines may still run from it
//! <dir>/layers/<sha256>/      one unpacked layer
//! <dir>/skeletons/<key>/      topmost layers
//! <dir>/work/                 imports in progress
//! ```

mod accounts;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod garbage;
mod host;
mod import;
mod layers;
mod limits;
mod pull;
mod record;
mod scratch;
mod skeleton;
mod store;
mod unpack;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) use pull::Pulled;
pub(crate) use store::ImageStore;

/// How the root of a machine is put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedImage {
    /// Overlay lower directories, topmost first; the first is always our skeleton.
    pub(crate) lower: Vec<PathBuf>,
    /// Read-only binds into the root, parents first.
    pub(crate) binds: Vec<Bind>,
    /// The image's own environment.
    pub(crate) env: BTreeMap<String, String>,
}

/// A directory of the host in the root. To be mounted recursively, read-only, nosuid, nodev and
/// **without an id mapping**: then nobody in the sandbox owns a file in it, and what the host
/// does not let everyone read stays unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) source: PathBuf,
    /// Absolute in the root; exists in the skeleton.
    pub(crate) target: PathBuf,
}
