//! `GET /files/archive`: everything below a directory, or one file, as a tar stream.
//!
//! Each entry has the size that its header says, whatever happens to the file meanwhile. What is
//! left out or was not whole is told in the comment of a last, global header.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use hyper::Response;
use sandbank_protocol::{ArchiveReport, Fault, FileKind, FileStat, Told};
use sandbank_rooted_fs::{
    Directory, Links, Order, RegularFile, RelPath, RootedError, Visit, Visitor, walk,
};
use tar::EntryType;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use super::tar_header::TarHeader;
use crate::http::RunnerBody;
use crate::limits::{
    ARCHIVE_CHUNK_BYTES, MAX_ARCHIVE_BYTES, MAX_ARCHIVE_DEPTH, MAX_ARCHIVE_ENTRIES,
    MAX_ARCHIVE_TIME, MAX_NAMED_PATH_CHARS, MAX_NAMED_PATHS,
};
use crate::offload::{Findings, Gone, Offload};

pub(super) fn handle(
    workspace: &Workspace,
    offload: &Offload,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    query.finish()?;
    let root = &workspace.root;
    let begun = match root.stat(&path, Links::Follow).map_err(refuse)?.kind {
        FileKind::Directory => {
            let top = root.open_directory(&path).map_err(refuse)?;
            offload.begin("archive", move |findings| {
                Archive::new(findings, top.path()).tree(top);
            })
        }
        _ => {
            let file = root.open_read(&path).map_err(refuse)?;
            let (directory, name) = path.split().ok_or(RootedError::IsRoot).map_err(refuse)?;
            let name = name.to_owned();
            offload.begin("archive", move |findings| {
                Archive::new(findings, &directory).single(&name, &file);
            })
        }
    };
    begun.map(Response::new)
}

struct Archive {
    findings: Findings,
    /// What the paths of entries do not begin with.
    top: usize,
    report: ArchiveReport,
    stop: Option<Stop>,
    /// Content that may still be put into it.
    left: u64,
    deadline: Instant,
}

enum Stop {
    Gone,
    TooMany,
    TooLong,
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl Archive {
    fn new(findings: Findings, top: &RelPath) -> Self {
        let top = if top.is_root() { 0 } else { top.as_bytes().len() + 1 };
        Self {
            findings,
            top,
            report: ArchiveReport::default(),
            stop: None,
            left: MAX_ARCHIVE_BYTES,
            deadline: Instant::now() + MAX_ARCHIVE_TIME,
        }
    }

    fn tree(mut self, top: Directory) {
        walk(top, Order::Found, &mut self);
        self.finish();
    }

    fn single(mut self, name: &OsStr, file: &RegularFile) {
        self.stop = self.file(name.as_bytes(), &name.to_string_lossy(), file).err();
        self.finish();
    }

    fn finish(mut self) {
        let stop = match self.stop.take() {
            Some(stop) => Err(stop),
            None => self.end().map_err(Stop::from),
        };
        let message = match stop {
            Ok(()) | Err(Stop::Gone) => return,
            Err(Stop::TooMany) => format!("the tree has more than {MAX_ARCHIVE_ENTRIES} entries"),
            Err(Stop::TooLong) => format!("the archive took more than {MAX_ARCHIVE_TIME:?}"),
        };
        self.findings.fail(io::Error::other(message));
    }

    fn end(&mut self) -> Result<(), Gone> {
        let report = serde_json::to_vec(&self.report).expect("protocol types are plain data");
        self.findings.append(|out| {
            TarHeader::write_comment(out, &report);
            out.resize(out.len() + 1024, 0);
        })
    }

    fn add(&mut self, dir: &Directory, name: &OsStr, kind: FileKind) -> Result<(), Stop> {
        if self.report.entries == MAX_ARCHIVE_ENTRIES {
            return Err(Stop::TooMany);
        }
        self.in_time()?;
        let whole = dir.path().join(name);
        let path = &whole.as_bytes()[self.top..];
        let shown = String::from_utf8_lossy(whole.as_bytes());
        let added = match kind {
            FileKind::File => match dir.open_file(name) {
                Ok(file) => return self.file(path, &shown, &file),
                Err(error) => Err(error),
            },
            FileKind::Directory => self.plain(dir, name, EntryType::Directory, path),
            FileKind::Symlink => self.plain(dir, name, EntryType::Symlink, path),
            FileKind::Other => {
                note(&mut self.report.skipped, &shown);
                return Ok(());
            }
        };
        match added {
            // It is gone by now.
            Err(RootedError::NotFound(_)) => Ok(()),
            Err(_) => {
                note(&mut self.report.unreadable, &shown);
                Ok(())
            }
            Ok(header) => {
                let Some(header) = header else { return Ok(()) };
                self.report.entries += 1;
                Ok(self.findings.append(|out| out.extend_from_slice(&header))?)
            }
        }
    }

    /// The header of a directory or a link; none when it is gone.
    fn plain(
        &self,
        dir: &Directory,
        name: &OsStr,
        kind: EntryType,
        path: &[u8],
    ) -> Result<Option<Vec<u8>>, RootedError> {
        let Some(stat) = dir.stat(name)? else { return Ok(None) };
        let mut header = Vec::new();
        if kind == EntryType::Directory {
            let path = [path, b"/"].concat();
            self.header(kind, &path, b"", 0, &stat).write(&mut header);
            return Ok(Some(header));
        }
        let Some(target) = dir.read_link(name)? else { return Ok(None) };
        self.header(kind, path, target.as_bytes(), 0, &stat).write(&mut header);
        Ok(Some(header))
    }

    fn header<'a>(
        &self,
        kind: EntryType,
        path: &'a [u8],
        link: &'a [u8],
        size: u64,
        stat: &FileStat,
    ) -> TarHeader<'a> {
        let modified = u64::try_from(stat.modified_ms / 1000).unwrap_or(0);
        TarHeader { kind, path, link, size, mode: stat.mode & 0o777, modified }
    }

    fn in_time(&self) -> Result<(), Stop> {
        if Instant::now() >= self.deadline { Err(Stop::TooLong) } else { Ok(()) }
    }

    fn file(&mut self, path: &[u8], shown: &str, file: &RegularFile) -> Result<(), Stop> {
        let size = file.stat().size;
        let Some(left) = self.left.checked_sub(size) else {
            note(&mut self.report.skipped, shown);
            return Ok(());
        };
        self.left = left;
        self.report.entries += 1;
        let header = self.header(EntryType::Regular, path, b"", size, file.stat());
        self.findings.append(|out| header.write(out))?;
        let mut at = 0;
        while at < size {
            self.in_time()?;
            let wanted = usize::try_from(size - at).unwrap_or(usize::MAX).min(ARCHIVE_CHUNK_BYTES);
            match file.read_at(at, wanted) {
                Ok(chunk) if !chunk.is_empty() => {
                    at += chunk.len() as u64;
                    self.findings.bytes(&chunk)?;
                }
                // It became shorter, or cannot be read on: the size was promised.
                _ => {
                    note(&mut self.report.changed, shown);
                    return Ok(self.zeros(size - at + padding(size))?);
                }
            }
        }
        Ok(self.zeros(padding(size))?)
    }

    fn zeros(&mut self, mut left: u64) -> Result<(), Gone> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while left > 0 {
            let piece = left.min(ZEROS.len() as u64);
            self.findings.bytes(&ZEROS[..piece as usize])?;
            left -= piece;
        }
        Ok(())
    }
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % 512
}

fn note(told: &mut Told, path: &str) {
    told.count += 1;
    if told.paths.len() < MAX_NAMED_PATHS {
        told.paths.push(path.chars().take(MAX_NAMED_PATH_CHARS).collect());
    }
}

impl Visitor for Archive {
    fn entry(&mut self, dir: &Directory, depth: usize, name: &OsStr, kind: FileKind) -> Visit {
        if let Err(stop) = self.add(dir, name, kind) {
            self.stop = Some(stop);
            return Visit::Stop;
        }
        if kind == FileKind::Directory && depth == MAX_ARCHIVE_DEPTH {
            let path = dir.path().join(name);
            note(&mut self.report.skipped, &String::from_utf8_lossy(path.as_bytes()));
            return Visit::Skip;
        }
        Visit::Go
    }

    fn failed(&mut self, error: RootedError) -> Visit {
        let path = error.path().map_or(&[][..], RelPath::as_bytes);
        note(&mut self.report.unreadable, &String::from_utf8_lossy(path));
        Visit::Go
    }
}
