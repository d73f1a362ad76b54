//! Local files that appear whole or not at all, and never through a link somebody left there.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::options::fresh_name;

/// A file in the making: beside its place, renamed into it when complete.
pub(super) struct Pending {
    file: File,
    made: PathBuf,
    place: PathBuf,
    complete: bool,
}

impl Pending {
    pub(super) fn new(place: &Path) -> Result<Self, Failure> {
        let made = place.with_file_name(fresh_name(".sandbank-copy"));
        let file = File::options().write(true).create_new(true).mode(0o600).open(&made);
        let file = file.map_err(Failure::io(format_args!("write {}", place.display())))?;
        Ok(Self { file, made, place: place.to_owned(), complete: false })
    }

    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        let place = self.place.display();
        self.file.write_all(chunk).map_err(Failure::io(format_args!("write {place}")))
    }

    /// `rename` replaces a link instead of following it.
    pub(super) fn finish(mut self, mode: u32) -> Result<(), Failure> {
        let plain = Permissions::from_mode(mode & 0o777);
        let moved =
            self.file.set_permissions(plain).and_then(|()| fs::rename(&self.made, &self.place));
        moved.map_err(Failure::io(format_args!("write {}", self.place.display())))?;
        self.complete = true;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.complete {
            let _ = fs::remove_file(&self.made);
        }
    }
}

/// A real directory: a link with that name would let a sandbox write elsewhere.
pub(super) fn real_directory(path: &Path) -> Result<(), Failure> {
    let refuse = || {
        Failure::new(
            crate::failure::Exit::Refused,
            format!("{} is in the way: a directory must go there", path.display()),
        )
        .hint("move it away, or copy to another place")
    };
    match fs::create_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(path) {
                Ok(found) if found.is_dir() => Ok(()),
                _ => Err(refuse()),
            }
        }
        Err(error) => Err(Failure::from_io(&format!("make {}", path.display()), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_replaces_a_link_instead_of_following_it() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, place) = (dir.path().join("victim"), dir.path().join("place"));
        fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, &place).unwrap();
        let mut pending = Pending::new(&place).unwrap();
        pending.write(b"new").unwrap();
        pending.finish(0o644).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(fs::read_to_string(&place).unwrap(), "new");
    }

    #[test]
    fn an_unfinished_file_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        drop(Pending::new(&dir.path().join("place")).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_to_a_directory_is_not_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(real_directory(&link).is_err());
        assert!(real_directory(&dir.path().join("new")).is_ok());
    }
}
