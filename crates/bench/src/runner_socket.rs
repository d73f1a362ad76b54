//! Where the daemon reaches the runner of a sandbox, for measurements without the daemon.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A Unix address has 108 bytes, one of them for the end.
const MAX_PATH: usize = 107;

/// The engine keeps the socket where a restarted daemon finds it again: in a directory that is
/// named after the sandbox.
pub(crate) fn of(data_dir: &Path, id: &str) -> Option<PathBuf> {
    let dir = data_dir.join("machines").join(id);
    let entries = std::fs::read_dir(dir).ok()?.flatten();
    let mut sockets = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_socket()));
    let path = sockets.next()?.path();
    (path.as_os_str().len() <= MAX_PATH).then_some(path)
}
