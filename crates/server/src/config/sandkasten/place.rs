//! Where the YAML file is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::resolve::Sources;

pub(crate) const FILE_ENV: &str = "SANDBANK_SANDKASTEN_CONFIG";
const USUAL: &str = "/etc/sandkasten/sandkasten.yaml";

/// The named one; else that in the working directory, if nobody else could have put it there; else
/// the machine's.
pub(crate) fn file_path(sources: &Sources, notices: &mut Vec<String>) -> Option<PathBuf> {
    let flag = sources.flags.sandkasten_config.clone();
    if let Some(named) = flag.or_else(|| sources.env(FILE_ENV).map(PathBuf::from)) {
        return Some(named);
    }
    let directory = sources.directory.as_ref()?;
    let near = directory.join("sandkasten.yaml");
    if near.exists() {
        if is_ours(&near) && is_ours(directory) {
            return Some(near);
        }
        notices.push(format!(
            "{} is not read: it or its directory is somebody else's, or others may write to it",
            near.display()
        ));
    }
    let usual = PathBuf::from(USUAL);
    (sources.is_root && usual.exists()).then_some(usual)
}

/// Whoever can change the file says who may call this daemon.
fn is_ours(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    path.metadata()
        .is_ok_and(|meta| (meta.uid() == own || meta.uid() == 0) && meta.mode() & 0o022 == 0)
}
