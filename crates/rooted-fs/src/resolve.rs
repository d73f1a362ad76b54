//! The one place where a client's path of more than one name is resolved.
//!
//! `RESOLVE_BENEATH` refuses every absolute link. Links such as `ln -s $PWD/a b` are common and
//! harmless, so a link whose target is below one of the root's names is rewritten to a relative
//! path, and the result is resolved, and checked, from the root again.

use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, ResolveFlags, readlinkat};
use rustix::io::Errno;

use crate::error::At;
use crate::limits::{MAX_LINKS, MAX_PATH_BYTES};
use crate::opening::open_below;
use crate::stat::Links;
use crate::{RelPath, Root, RootedError};

impl Root {
    /// Opens what is at `path`, following a final link only where `links` says so.
    pub(crate) fn resolve(
        &self,
        path: &RelPath,
        flags: OFlags,
        links: Links,
    ) -> Result<OwnedFd, RootedError> {
        self.try_resolve(path.as_bytes(), flags, links).at(path)
    }

    /// The directory that holds the last name of `path`, usable as a base for `*at` calls.
    pub(crate) fn resolve_directory(&self, path: &RelPath) -> Result<OwnedFd, RootedError> {
        self.resolve(path, OFlags::PATH | OFlags::DIRECTORY, Links::Follow)
    }

    pub(crate) fn try_resolve(
        &self,
        path: &[u8],
        flags: OFlags,
        links: Links,
    ) -> Result<OwnedFd, Errno> {
        let flags = match links {
            Links::Follow => flags,
            Links::Keep => flags | OFlags::NOFOLLOW,
        };
        let mut path = path.to_vec();
        for _ in 0..MAX_LINKS {
            match open_below(&self.dir, &path, flags, ResolveFlags::empty()) {
                Err(Errno::XDEV) => path = self.rewrite_first_link(&path, links)?,
                answer => return answer,
            }
        }
        Err(Errno::LOOP)
    }

    /// Replaces the first link on the way by its target, as seen from the root.
    fn rewrite_first_link(&self, path: &[u8], links: Links) -> Result<Vec<u8>, Errno> {
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let followed = match links {
            Links::Follow => names.len(),
            Links::Keep => names.len() - 1,
        };
        for (index, name) in names.iter().enumerate().take(followed) {
            let before = names[..index].join(&b'/');
            let directory = OFlags::PATH | OFlags::DIRECTORY;
            let dir = open_below(&self.dir, &before, directory, ResolveFlags::empty())?;
            let target = match readlinkat(&dir, *name, Vec::new()) {
                Ok(target) => target.into_bytes(),
                Err(Errno::INVAL) => continue,
                Err(errno) => return Err(errno),
            };
            let from_root = match target.first() {
                Some(b'/') => relative(self.names.strip(&target).ok_or(Errno::XDEV)?).to_vec(),
                _ => [before.as_slice(), &target].join(&b'/'),
            };
            let mut rewritten = relative(&from_root).to_vec();
            for rest in &names[index + 1..] {
                rewritten.push(b'/');
                rewritten.extend_from_slice(rest);
            }
            let fits = rewritten.len() < MAX_PATH_BYTES;
            return if fits { Ok(relative(&rewritten).to_vec()) } else { Err(Errno::NAMETOOLONG) };
        }
        Err(Errno::XDEV)
    }
}

fn relative(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    &path[start..]
}
