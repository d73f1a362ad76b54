//! Looks into unpacked layers as overlayfs would stack them, without following any link.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use sandbank_engine::EngineError;
use sandbank_image_archive::{PROGRAMS, bad, elf_machine, machine};

use super::unpack::OPAQUE_ATTRIBUTE;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What one layer says about a name.
enum Seen {
    /// Nothing: the layers below decide.
    Nothing,
    /// It is there, or it is hidden: the layers below do not matter.
    Decided(Option<File>),
}

/// The regular file `dir/name` of the stacked `layers`, topmost first. A link in its place, or in
/// place of `dir`, counts as no file.
pub(super) fn open_file(layers: &[PathBuf], dir: &str, name: &str) -> Option<File> {
    for layer in layers {
        let root = rustix::fs::openat(CWD, layer, DIRECTORY, Mode::empty()).ok()?;
        if let Seen::Decided(file) = look(&root, dir, name) {
            return file;
        }
    }
    None
}

fn look(root: &OwnedFd, dir: &str, name: &str) -> Seen {
    let mut here = root.try_clone().ok();
    let mut opaque = false;
    for part in dir.split('/').filter(|part| !part.is_empty()) {
        let Some(parent) = here.take() else { return Seen::Decided(None) };
        here = match rustix::fs::openat(&parent, part, DIRECTORY, Mode::empty()) {
            Ok(next) => Some(next),
            Err(Errno::NOENT) if opaque => return Seen::Decided(None),
            Err(Errno::NOENT) => return Seen::Nothing,
            Err(_) => return Seen::Decided(None),
        };
        opaque |= here.as_ref().is_some_and(is_opaque);
    }
    let Some(here) = here else { return Seen::Decided(None) };
    match rustix::fs::statat(&here, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&here, name, flags, Mode::empty());
            Seen::Decided(file.ok().map(File::from))
        }
        Err(Errno::NOENT) if !opaque => Seen::Nothing,
        _ => Seen::Decided(None),
    }
}

fn is_opaque(dir: &OwnedFd) -> bool {
    let mut value = [0; 1];
    rustix::fs::fgetxattr(dir, OPAQUE_ATTRIBUTE, &mut value) == Ok(1) && value == *b"y"
}

/// Text of a file, if there is one of at most `most` bytes.
pub(super) fn read_text(layers: &[PathBuf], dir: &str, name: &str, most: u64) -> Option<String> {
    let mut content = Vec::new();
    let file = open_file(layers, dir, name)?;
    file.take(most + 1).read_to_end(&mut content).ok()?;
    let fits = content.len() as u64 <= most;
    fits.then(|| String::from_utf8_lossy(&content).into_owned())
}

/// A layer whose programs are for another machine would only fail later, in every sandbox.
pub(super) fn check_machine(layer: &std::path::Path) -> Result<(), EngineError> {
    let Ok(root) = rustix::fs::openat(CWD, layer, DIRECTORY, Mode::empty()) else { return Ok(()) };
    for program in PROGRAMS {
        let path = CString::new(program).expect("it has no NUL");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(&root, &path, flags, Mode::empty(), resolve);
        let mut head = [0; 20];
        let read = opened.map(File::from).map(|mut file| file.read_exact(&mut head));
        if matches!(read, Ok(Ok(()))) && head.starts_with(b"\x7fELF") {
            let found = elf_machine(&head);
            return if found == machine() {
                Ok(())
            } else {
                Err(bad(format!("its /{program} is for {found}, not for {}", machine())))
            };
        }
    }
    Ok(())
}
