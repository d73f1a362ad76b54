//! Where the YAML file is.

use std::path::PathBuf;

use super::super::resolve::Sources;

pub(crate) const FILE_ENV: &str = "SANDBANK_SANDKASTEN_CONFIG";

/// The named one, else the machine's. Never one of the working directory on its own: whoever wrote
/// it, in a repository for example, would say who may call this daemon, and where it is.
pub(crate) fn file_path(sources: &Sources, notices: &mut Vec<String>) -> Option<PathBuf> {
    let flag = sources.flags.sandkasten_config.clone();
    if let Some(named) = flag.or_else(|| sources.env(FILE_ENV).map(PathBuf::from)) {
        return Some(named);
    }
    let near = sources.directory.as_ref().map(|directory| directory.join("sandkasten.yaml"));
    if near.is_some_and(|near| near.exists()) {
        notices.push(format!(
            "./sandkasten.yaml is not read: whoever wrote it would decide who may call this \
             server; if it is meant, name it with --sandkasten-config or {FILE_ENV}"
        ));
    }
    sources.sandkasten_file.clone().filter(|file| file.exists())
}
