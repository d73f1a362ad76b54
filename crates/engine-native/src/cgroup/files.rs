//! The small text files of which cgroup interfaces consist.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use sandbank_engine::EngineError;

use crate::kernel::mount::clone_tree;

/// Room for the longest of them, `memory.stat`.
const USUAL_BYTES: usize = 4 << 10;

/// No such file is longer.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// An error that names the file: a bare "permission denied" helps nobody.
pub(super) fn set(dir: &Path, file: &str, value: &str) -> Result<(), EngineError> {
    write(&dir.join(file), value).map_err(|source| {
        let text = format!("set {} to {value}: {source}", dir.join(file).display());
        EngineError::Io { step: "limit the machine", source: io::Error::new(source.kind(), text) }
    })
}

/// These files say nothing of their size; with room for all of it, one read brings the text.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::with_capacity(USUAL_BYTES);
    File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn read_u64(path: &Path) -> io::Result<u64> {
    let text = read(path)?;
    parse(text.trim()).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

fn parse(text: &str) -> Option<u64> {
    if text == "max" { Some(u64::MAX) } else { text.parse().ok() }
}

/// The number after `key` in a file of `key number` lines.
pub(super) fn read_key(path: &Path, key: &str) -> io::Result<Option<u64>> {
    Ok(find_key(&read(path)?, key))
}

fn find_key(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| parse(value.trim())).flatten()
    })
}

pub(super) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = libc::O_DIRECTORY | libc::O_CLOEXEC;
    Ok(OpenOptions::new().read(true).custom_flags(flags).open(path)?.into())
}

/// A descriptor from which `..` leads nowhere: the runner gets it, and with it whoever makes the
/// runner climb from it. Without root it is an ordinary one.
pub(super) fn open_detached(path: &Path) -> io::Result<OwnedFd> {
    match clone_tree(rustix::fs::CWD, path, false) {
        Ok(tree) => {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(tree, ".", flags, Mode::empty())?)
        }
        Err(_) if !rustix::process::geteuid().is_root() => open_dir(path),
        Err(error) => Err(error),
    }
}

/// Made, or there already.
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Removes a cgroup with all below it; `false` while the kernel holds one of them.
pub(super) fn remove_tree(path: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut gone = true;
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            gone &= remove_tree(&entry.path())?;
        }
    }
    match fs::remove_dir(path) {
        Ok(()) => Ok(gone),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => Ok(gone),
            Some(libc::EBUSY | libc::ENOTEMPTY) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Removes each child that no process is in with all below it, then the cgroup itself; `false` when
/// something stays.
pub(super) fn remove_empty(path: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let mut living = Vec::new();
            processes(&entry.path(), &mut living)?;
            if living.is_empty() {
                remove_tree(&entry.path())?;
            }
        }
    }
    Ok(fs::remove_dir(path).is_ok())
}

/// Every process in a cgroup and below it.
pub(super) fn processes(path: &Path, into: &mut Vec<i32>) -> io::Result<()> {
    let text = match fs::read_to_string(path.join("cgroup.procs")) {
        Ok(text) => text,
        Err(error) if gone(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    into.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            processes(&entry.path(), into)?;
        }
    }
    Ok(())
}

/// A cgroup that was removed while its file was being read answers ENODEV.
pub(super) fn gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

/// SIGKILL to each, by pid: they are in a cgroup of ours at the moment it is read, and a pid is
/// not reused between two lines of this program in practice, but only a kill by cgroup is exact.
pub(super) fn kill_all(path: &Path) -> io::Result<()> {
    let mut pids = Vec::new();
    processes(path, &mut pids)?;
    for pid in pids {
        // Zero would be a process outside of this pid namespace.
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_matched_whole() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\nmax max\n";
        assert_eq!(find_key(text, "oom_kill"), Some(3));
        assert_eq!(find_key(text, "max"), Some(u64::MAX));
        assert_eq!(find_key(text, "oom"), None);
    }
}
