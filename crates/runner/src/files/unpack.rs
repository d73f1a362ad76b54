//! `PUT /files/archive`: a tar archive, plain or gzip, unpacked below a directory.
//!
//! The archive is hostile input. It is read strictly, and everything it makes is made from the
//! directory's own descriptor, so that no name and no link in it leads out of there. Bits beyond
//! the nine permission bits and owners are dropped. The first entry that is refused ends it and is
//! named; what was unpacked before stays.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{Fault, FaultCode, Unpacked};
use sandbank_rooted_fs::{RelPath, Root, RootedError};
use sandbank_tar_stream::{Entry, Kind, Skip, TarError, TarStream};
use tokio::sync::mpsc;

use super::Workspace;
use super::fault::{refuse, refuse_path};
use super::query::Query;
use super::upload::Upload;
use crate::http::{self, RunnerBody};
use crate::limits::{
    ARCHIVE_CHUNK_BYTES, MAX_ARCHIVE_BYTES, MAX_ARCHIVE_DEPTH, MAX_ARCHIVE_ENTRIES,
    MAX_ARCHIVE_MODES_BYTES, MAX_ARCHIVE_TIME, MAX_ARCHIVE_TRAILER_BYTES, MAX_NAMED_PATH_CHARS,
    STANDSTILL, UPLOAD_AHEAD,
};
use crate::offload::{Offload, next_pause};

pub(super) async fn handle(
    workspace: &Workspace,
    offload: &Offload,
    mut query: Query,
    body: Incoming,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    query.finish()?;
    let root = workspace.root();
    let (sender, receiver) = mpsc::channel(UPLOAD_AHEAD);
    let unpacking = offload.answer("unpack", move |wanted| unpack(&root, &path, receiver, wanted));
    let feeding = async move {
        let mut upload = Upload::new(body);
        loop {
            let chunk = match upload.chunk().await {
                Ok(None) => return,
                Ok(Some(chunk)) => Ok(chunk),
                Err(fault) => Err(io::Error::other(fault.message)),
            };
            let broken = chunk.is_err();
            if sender.send(chunk).await.is_err() || broken {
                return;
            }
        }
    };
    let mut unpacking = pin!(unpacking);
    let unpacked = tokio::select! {
        biased;
        unpacked = &mut unpacking => unpacked,
        () = feeding => unpacking.await,
    };
    Ok(http::json(&unpacked?))
}

fn unpack(
    root: &Arc<Root>,
    path: &RelPath,
    body: mpsc::Receiver<io::Result<Bytes>>,
    wanted: &dyn Fn() -> bool,
) -> Result<Unpacked, Fault> {
    let stream = Decoded::open(Body { chunks: body, chunk: Bytes::new() }).map_err(damaged)?;
    root.mkdir_all(path).map_err(refuse)?;
    let base = root.below(path).map_err(refuse)?;
    let done = Unpacked { entries: 0, bytes: 0 };
    let mut unpack = Unpack { base, done, promised: 0, modes: BTreeMap::new(), modes_bytes: 0 };
    let mut stream = TarStream::new(stream, true);
    let placed = unpack.place_all(&mut stream, path, wanted);
    // Of what was unpacked before a refusal, too.
    let finished = unpack.finish();
    placed?;
    finished?;
    drain(stream.into_inner()).map_err(|error| unpack.after(damaged(error.into())))?;
    Ok(unpack.done)
}

/// Writers of archives fill the last block up; a body that is not taken to its end looks broken.
/// What tells whether a compressed one arrived as it was sent comes last.
fn drain(rest: Decoded) -> io::Result<()> {
    io::copy(&mut rest.take(MAX_ARCHIVE_TRAILER_BYTES), &mut io::sink()).map(drop)
}

/// What a remembered mode takes beside its path's text.
const MODE_BYTES: usize = 2 * size_of::<(RelPath, u32)>() + 16;

struct Unpack {
    /// Nothing leads out of it.
    base: Root,
    done: Unpacked,
    /// Bytes of all files so far, and of the one that comes next.
    promised: u64,
    /// Modes of directories that are set at the end: until then they are filled.
    modes: BTreeMap<RelPath, u32>,
    modes_bytes: usize,
}

impl Unpack {
    fn place_all(
        &mut self,
        stream: &mut TarStream<Decoded>,
        path: &RelPath,
        wanted: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        while let Some(entry) = stream.next_entry().map_err(|error| self.after(damaged(error)))? {
            if !wanted() {
                return Err(refuse(RootedError::Abandoned(path.clone())));
            }
            self.place(&entry, stream).map_err(|fault| self.at(&entry, fault))?;
            self.done.entries += 1;
        }
        Ok(())
    }

    fn place(&mut self, entry: &Entry, stream: &mut TarStream<Decoded>) -> Result<(), Fault> {
        if self.done.entries == MAX_ARCHIVE_ENTRIES {
            let message = format!("an archive has at most {MAX_ARCHIVE_ENTRIES} entries");
            return Err(Fault::new(FaultCode::LimitReached, message));
        }
        // One that says itself that it does not fit is refused before any of it is written.
        self.promised = self.promised.saturating_add(entry.size);
        if self.promised > MAX_ARCHIVE_BYTES {
            let message = format!("the files of an archive have at most {MAX_ARCHIVE_BYTES} bytes");
            return Err(Fault::new(FaultCode::LimitReached, message));
        }
        let path = self.path(&entry.path)?;
        match entry.kind {
            Kind::Directory if path.is_root() => Ok(()),
            Kind::Directory => self.directory(path, entry.mode),
            Kind::File => self.file(&path, entry, stream),
            Kind::Symlink if entry.link.is_empty() => Err(invalid("a link to nowhere")),
            Kind::Symlink => {
                let target = OsStr::from_bytes(&entry.link);
                self.base.symlink(&path, target).map(drop).map_err(refuse)
            }
            Kind::Hardlink => {
                let existing = self.path(&entry.link)?;
                self.base.hardlink(&path, &existing).map(drop).map_err(refuse)
            }
            Kind::Special => Err(Fault::new(FaultCode::WrongKind, "it is a device or a pipe")),
        }
    }

    /// Of an entry or of what a hard link names.
    fn path(&self, path: &[u8]) -> Result<RelPath, Fault> {
        if path.starts_with(b"/") {
            return Err(Fault::new(FaultCode::OutsideWorkspace, "the name is absolute"));
        }
        let path = self.base.parse(path).map_err(refuse_path)?;
        let depth = path.as_bytes().split(|byte| *byte == b'/').count();
        if depth > MAX_ARCHIVE_DEPTH {
            let message = format!("it is more than {MAX_ARCHIVE_DEPTH} directories deep");
            return Err(Fault::new(FaultCode::LimitReached, message));
        }
        Ok(path)
    }

    fn directory(&mut self, path: RelPath, mode: u32) -> Result<(), Fault> {
        let mode = mode & 0o777;
        let found = self.base.mkdir_all(&path).map_err(refuse)?.mode;
        // Of several entries of a directory the last counts.
        if let Some(before) = self.modes.get_mut(&path) {
            *before = mode;
            return Ok(());
        }
        if found == mode {
            return Ok(());
        }
        self.modes_bytes += path.as_bytes().len() + MODE_BYTES;
        if self.modes_bytes > MAX_ARCHIVE_MODES_BYTES {
            return self.set_mode(&path, mode | 0o700);
        }
        self.modes.insert(path, mode);
        Ok(())
    }

    fn file(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        stream: &mut TarStream<Decoded>,
    ) -> Result<(), Fault> {
        let mut file = self.base.create(path, Some(entry.mode)).map_err(refuse)?;
        let mut buffer = vec![0; ARCHIVE_CHUNK_BYTES.min(entry.size.max(1) as usize)];
        loop {
            match stream.read_body(&mut buffer).map_err(damaged)? {
                0 => break,
                read => {
                    file.write_all(&buffer[..read]).map_err(refuse)?;
                    self.done.bytes += read as u64;
                }
            }
        }
        file.set_modified(entry.mtime);
        file.commit().map(drop).map_err(refuse)
    }

    /// Never through a link: one that has taken a directory's place keeps what it points to.
    fn set_mode(&self, path: &RelPath, mode: u32) -> Result<(), Fault> {
        match self.base.chmod(path, mode, false, &|| true) {
            Ok(_) | Err(RootedError::NotFound(_) | RootedError::WrongKind { .. }) => Ok(()),
            Err(error) => Err(refuse(error)),
        }
    }

    /// The deepest directories first: who may not enter one cannot change what is in it.
    fn finish(&mut self) -> Result<(), Fault> {
        while let Some((path, mode)) = self.modes.pop_last() {
            self.set_mode(&path, mode)?;
        }
        Ok(())
    }

    fn at(&self, entry: &Entry, fault: Fault) -> Fault {
        let name = String::from_utf8_lossy(&entry.path);
        let name: String = name.chars().take(MAX_NAMED_PATH_CHARS).collect();
        let number = self.done.entries + 1;
        Fault::new(fault.code, format!("entry {number}, {name:?}: {}", fault.message))
    }

    fn after(&self, fault: Fault) -> Fault {
        let entries = self.done.entries;
        Fault::new(fault.code, format!("{} (after {entries} entries)", fault.message))
    }
}

fn invalid(message: &str) -> Fault {
    Fault::new(FaultCode::Invalid, message)
}

fn damaged(error: TarError) -> Fault {
    match error {
        TarError::Read(error)
            if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::FileTooLarge) =>
        {
            Fault::new(FaultCode::LimitReached, error.to_string())
        }
        error => Fault::new(FaultCode::Invalid, format!("the archive is damaged: {error}")),
    }
}

/// The body as it comes.
struct Body {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    chunk: Bytes,
}

impl Body {
    /// None at its end. A client that sends nothing for long does not keep a place.
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let began = Instant::now();
        let mut pause = Duration::ZERO;
        loop {
            match self.chunks.try_recv() {
                Ok(chunk) => return chunk.map(Some),
                Err(mpsc::error::TryRecvError::Disconnected) => return Ok(None),
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            if began.elapsed() >= STANDSTILL {
                let message = format!("nothing of the archive came for {STANDSTILL:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            pause = next_pause(pause);
            std::thread::sleep(pause);
        }
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.next()? {
                None => return Ok(0),
                Some(chunk) => self.chunk = chunk,
            }
        }
        let size = buffer.len().min(self.chunk.len());
        buffer[..size].copy_from_slice(&self.chunk.split_to(size));
        Ok(size)
    }
}

type Whole = io::Chain<io::Cursor<Vec<u8>>, Body>;

enum Form {
    Plain(Whole),
    Gzip(Box<MultiGzDecoder<Whole>>),
}

/// The archive itself, bounded in bytes and time.
struct Decoded {
    form: Form,
    left: u64,
    deadline: Instant,
}

impl Decoded {
    fn open(mut body: Body) -> Result<Self, TarError> {
        let mut first = Vec::with_capacity(2);
        body.by_ref().take(2).read_to_end(&mut first)?;
        let gzip = first == [0x1f, 0x8b];
        let whole = io::Cursor::new(first).chain(body);
        let form = match gzip {
            true => Form::Gzip(Box::new(MultiGzDecoder::new(whole))),
            false => Form::Plain(whole),
        };
        Ok(Self { form, left: MAX_ARCHIVE_BYTES, deadline: Instant::now() + MAX_ARCHIVE_TIME })
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline {
            let message = format!("unpacking took more than {MAX_ARCHIVE_TIME:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        let read = match &mut self.form {
            Form::Plain(whole) => whole.read(buffer),
            Form::Gzip(decoder) => decoder.read(buffer),
        }?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let message = format!("the archive has more than {MAX_ARCHIVE_BYTES} bytes");
            io::Error::new(io::ErrorKind::FileTooLarge, message)
        })?;
        Ok(read)
    }
}

impl Skip for Decoded {}
