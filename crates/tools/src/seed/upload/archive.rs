//! The planned files as one tar stream, in little memory.
//!
//! Every entry has exactly the size that its header says. Small files are read before that is said; a
//! large one that becomes shorter meanwhile breaks the archive off, so that nobody takes it for whole.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use sandbank_rooted_fs::{RegularFile, RelPath, Root, RootedError};
use tokio::sync::mpsc;

use super::super::limits::{MAX_FILE_BYTES, MAX_TOTAL_BYTES, PIECE_BYTES, READ_AT_ONCE};
use super::plan::Plan;
use super::{SeedError, UploadReport};

/// Files between two lines of progress.
const FILES_PER_LINE: usize = 100;

type Pieces = mpsc::Sender<io::Result<Bytes>>;

pub(super) enum Written {
    Whole(UploadReport),
    /// Nobody wanted the rest.
    Unread,
}

/// Blocks; to be called on a thread of its own.
pub(super) fn write(
    root: &Root,
    plan: &Plan,
    pieces: Pieces,
    tell: &mpsc::UnboundedSender<String>,
) -> Result<Written, SeedError> {
    let mut report = UploadReport { skipped: plan.skipped.clone(), ..UploadReport::default() };
    let pipe = Pipe { pieces: pieces.clone(), piece: BytesMut::with_capacity(PIECE_BYTES) };
    let mut archive = tar::Builder::new(pipe);
    let mut all = || {
        for (number, path) in plan.files.iter().enumerate() {
            add(root, path, &mut archive, &mut report)?;
            if (number + 1) % FILES_PER_LINE == 0 {
                let _ = tell.send(format!("uploaded {} of {} files", number + 1, plan.files.len()));
            }
        }
        archive.finish().and_then(|()| archive.get_mut().flush()).map_err(|_| Broken::Pipe)
    };
    match all() {
        Ok(()) => Ok(Written::Whole(report)),
        Err(Broken::Pipe) => Ok(Written::Unread),
        Err(Broken::File(error)) => {
            let cut = io::Error::other("the archive was broken off by its sender");
            let _ = pieces.blocking_send(Err(cut));
            Err(error)
        }
    }
}

enum Broken {
    /// The other end is gone.
    Pipe,
    File(SeedError),
}

fn add(
    root: &Root,
    path: &RelPath,
    archive: &mut tar::Builder<Pipe>,
    report: &mut UploadReport,
) -> Result<(), Broken> {
    let file = match open(root, path) {
        Ok(file) => file,
        Err(RootedError::PermissionDenied(_)) => {
            report.skipped.unreadable += 1;
            return Ok(());
        }
        // Whatever is there now is not what was planned.
        Err(
            RootedError::NotFound(_)
            | RootedError::WrongKind { .. }
            | RootedError::NotADirectory(_)
            | RootedError::Escapes(_),
        ) => {
            report.skipped.vanished += 1;
            return Ok(());
        }
        Err(error) => return Err(Broken::File(unreadable(path, &error))),
    };
    let size = file.stat().size;
    // What was planned was within bounds; what is there now may have grown.
    if size > MAX_FILE_BYTES {
        return Err(Broken::File(SeedError::LargeFile { path: path.to_string() }));
    }
    let fits = |more: u64| match report.bytes + more <= MAX_TOTAL_BYTES {
        true => Ok(()),
        false => Err(Broken::File(SeedError::TooLarge)),
    };
    fits(size)?;
    let mut contents = Contents { file: &file, at: 0, end: size, error: None };
    if size <= READ_AT_ONCE {
        let most = usize::try_from(READ_AT_ONCE).unwrap_or(usize::MAX);
        let read = file.read_at(0, most).map_err(|error| Broken::File(unreadable(path, &error)))?;
        fits(read.len() as u64)?;
        append(archive, path, &file, read.len() as u64, read.as_slice())
            .map_err(|_| Broken::Pipe)?;
        report.bytes += read.len() as u64;
    } else {
        let appended = append(archive, path, &file, size, &mut contents);
        match (contents.error, appended) {
            (Some(Cut::Shorter), _) => {
                return Err(Broken::File(SeedError::Changed { path: path.to_string() }));
            }
            (Some(Cut::Failed(error)), _) => return Err(Broken::File(unreadable(path, &error))),
            (None, appended) => appended.map_err(|_| Broken::Pipe)?,
        }
        report.bytes += size;
    }
    report.files += 1;
    Ok(())
}

/// By names from the root, without following a link anywhere on the way.
fn open(root: &Root, path: &RelPath) -> Result<RegularFile, RootedError> {
    let (parent, name) = path.split().ok_or(RootedError::IsRoot)?;
    let top = root.open_directory(&RelPath::root())?;
    if parent.is_root() { top.open_file(name) } else { top.open_below(&parent)?.open_file(name) }
}

fn unreadable(path: &RelPath, error: &RootedError) -> SeedError {
    SeedError::Read { path: path.to_string(), reason: error.to_string() }
}

fn append(
    archive: &mut tar::Builder<Pipe>,
    path: &RelPath,
    file: &RegularFile,
    size: u64,
    contents: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(size);
    // Whose it is here means nothing there; whether it can be run does.
    header.set_mode(if file.stat().mode & 0o100 == 0 { 0o644 } else { 0o755 });
    header.set_mtime(u64::try_from(file.stat().modified_ms / 1_000).unwrap_or(0));
    archive.append_data(&mut header, Path::new(OsStr::from_bytes(path.as_bytes())), contents)
}

/// Exactly the bytes that were announced.
struct Contents<'f> {
    file: &'f RegularFile,
    at: u64,
    end: u64,
    error: Option<Cut>,
}

enum Cut {
    Shorter,
    Failed(RootedError),
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = buffer.len().min(left).min(PIECE_BYTES);
        if most == 0 {
            return Ok(0);
        }
        match self.file.read_at(self.at, most) {
            Ok(read) if read.is_empty() => {
                self.error = Some(Cut::Shorter);
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Ok(read) => {
                buffer[..read.len()].copy_from_slice(&read);
                self.at += read.len() as u64;
                Ok(read.len())
            }
            Err(error) => {
                self.error = Some(Cut::Failed(error));
                Err(io::Error::other("it cannot be read"))
            }
        }
    }
}

/// Pieces of even size, for whoever reads them elsewhere.
struct Pipe {
    pieces: Pieces,
    piece: BytesMut,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = self.piece.split().freeze();
        self.pieces.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
