//! The admin token in the data directory: made at the first start, found by the CLI.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::token;
use crate::config::Secret;

const NAME: &str = "token";
const MAX_BYTES: u64 = 4096;

/// The token, and whether it was made just now.
#[derive(Debug)]
pub struct TokenFile {
    pub token: Secret,
    pub path: PathBuf,
    pub created: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("failed to use the token file {}: {source}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the token file {} can be read by others; run: chmod 600 {}", .0.display(), .0.display())]
    Readable(PathBuf),
    #[error("the token file {} belongs to another user (uid {})", .0.display(), .1)]
    Foreign(PathBuf, u32),
    #[error("the token file {} holds no token; remove it to have a new one made", .0.display())]
    Empty(PathBuf),
}

impl TokenFile {
    /// Reads `<data_dir>/token`, or makes it with mode 0600. The directory must exist.
    pub fn open(data_dir: &Path) -> Result<Self, TokenFileError> {
        let path = data_dir.join(NAME);
        let failed = |source| TokenFileError::Io { path: path.clone(), source };
        match make(&path, data_dir) {
            Ok(token) => Ok(Self { token, path, created: true }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let file = open(&path).map_err(failed)?;
                Ok(Self { token: read(file, &path)?, path, created: false })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Written under another name and linked into place, so that nobody ever sees half a token.
fn make(path: &Path, data_dir: &Path) -> std::io::Result<Secret> {
    if path.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let draft = data_dir.join(format!(".token.{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    let token = token::random();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = writeln!(file, "{}", token.expose())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&draft, path));
    let _ = std::fs::remove_file(&draft);
    written.map(|()| token)
}

fn open(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

fn read(file: File, path: &Path) -> Result<Secret, TokenFileError> {
    let failed = |source| TokenFileError::Io { path: path.to_owned(), source };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(std::io::Error::other("it is not a regular file")));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(TokenFileError::Foreign(path.to_owned(), metadata.uid()));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(TokenFileError::Readable(path.to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenFileError::Empty(path.to_owned()));
    }
    Ok(Secret::new(token))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_first_start_makes_a_token_and_later_ones_find_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = TokenFile::open(dir.path()).unwrap();
        let second = TokenFile::open(dir.path()).unwrap();
        assert!(first.created && !second.created);
        assert_eq!(first.token, second.token);
        assert_eq!(first.path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let made = TokenFile::open(dir.path()).unwrap();
        std::fs::set_permissions(&made.path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(TokenFile::open(dir.path()), Err(TokenFileError::Readable(_))));
    }

    #[test]
    fn links_and_empty_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "stolen").unwrap();
        symlink(&elsewhere, dir.path().join(NAME)).unwrap();
        assert!(matches!(TokenFile::open(dir.path()), Err(TokenFileError::Io { .. })));
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        let mut empty = OpenOptions::new();
        empty.write(true).create_new(true).mode(0o600).open(dir.path().join(NAME)).unwrap();
        assert!(matches!(TokenFile::open(dir.path()), Err(TokenFileError::Empty(_))));
    }
}
