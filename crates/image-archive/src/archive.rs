//! An archive on disk: uncompressed, indexed, and recognised as one of the formats.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use sandbank_engine::{EngineError, sha256_hex};

use crate::compression::{self, Compression, Counted};
use crate::limits::{JSON_BYTES, MEMBERS};
use crate::{Budget, ImportLimits, Kind, Skip, TarStream, bad, damaged};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Rootfs,
    DockerSave,
    OciLayout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    pub offset: u64,
    pub size: u64,
}

enum Indexed {
    File(Member),
    Link(String),
}

pub struct Archive {
    file: File,
    pub length: u64,
    pub format: Format,
    /// Files of a `docker save` or OCI archive by their clean names; empty for a root file system.
    members: HashMap<String, Indexed>,
}

/// Opens an archive that an administrator named. A pipe or device is refused without blocking.
fn open_file(path: &Path) -> Result<File, EngineError> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| bad(format!("{} cannot be opened: {error}", path.display())))?;
    let metadata = file.metadata().map_err(EngineError::io("look at the image archive"))?;
    if !metadata.is_file() {
        return Err(bad(format!("{} is not a file", path.display())));
    }
    if metadata.len() == 0 {
        return Err(bad("it is empty"));
    }
    Ok(file)
}

/// Uncompresses into an unnamed file of `scratch`, because layers are not in reading order.
fn spool(
    file: File,
    scratch: &Path,
    budget: &mut Budget,
    tell: impl FnMut(u64),
) -> Result<File, EngineError> {
    let mut reader = compression::decoder(BufReader::new(Counted::new(file, tell)))?;
    let mut spooled = File::options()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(scratch)
        .map_err(EngineError::io("create a file for the uncompressed archive"))?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => return Ok(spooled),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(bad(format!("it cannot be uncompressed: {error}"))),
        };
        budget.take_bytes(read as u64, &spooled)?;
        spooled.write_all(&buffer[..read]).map_err(EngineError::io("uncompress the archive"))?;
    }
}

/// Reads a file from its start and skips by seeking.
struct Seeking<'a> {
    inner: BufReader<&'a File>,
    left: u64,
}

impl Read for Seeking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

impl Skip for Seeking<'_> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= bytes;
        let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        self.inner.seek_relative(bytes)
    }
}

/// `./a//b` → `a/b`; none for a name that leads out or is no text.
fn clean(path: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(path).ok()?;
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

const ROOT_NAMES: [&str; 5] = ["bin", "etc", "lib", "sbin", "usr"];

impl Archive {
    /// `tell` hears how many compressed bytes were read.
    pub fn open(
        path: &Path,
        scratch: &Path,
        limits: ImportLimits,
        tell: impl FnMut(u64),
    ) -> Result<Self, EngineError> {
        let mut file = open_file(path)?;
        let compression = compression::detect(&mut BufReader::new(&file))?;
        file.rewind().map_err(EngineError::io("read the image archive"))?;
        if compression != Compression::None {
            file = spool(file, scratch, &mut Budget::new(limits), tell)?;
        }
        let length = file.metadata().map_err(EngineError::io("look at the archive"))?.len();
        let mut archive = Self { file, length, format: Format::Rootfs, members: HashMap::new() };
        archive.index(limits)?;
        Ok(archive)
    }

    /// One that was put together from blobs whose places are known.
    pub fn assembled(file: File, length: u64, blobs: HashMap<String, Member>) -> Self {
        let members = blobs.into_iter().map(|(name, member)| (name, Indexed::File(member)));
        Self { file, length, format: Format::OciLayout, members: members.collect() }
    }

    /// What says itself that it is too much is refused here, before any of it is unpacked.
    fn index(&mut self, limits: ImportLimits) -> Result<(), EngineError> {
        (&self.file).rewind().map_err(EngineError::io("read the image archive"))?;
        let inner = BufReader::new(&self.file);
        let mut stream = TarStream::new(Seeking { inner, left: self.length }, true);
        let mut members = HashMap::new();
        let (mut budget, mut root_like) = (Budget::new(limits), false);
        while let Some(entry) = stream.next_entry().map_err(damaged)? {
            budget.take_entry()?;
            budget.promise_bytes(entry.size)?;
            let Some(name) = clean(&entry.path) else { continue };
            root_like |= ROOT_NAMES.contains(&name.split('/').next().unwrap_or_default());
            if root_like || members.len() >= MEMBERS {
                members.clear();
                root_like = true;
                continue;
            }
            match entry.kind {
                Kind::File => {
                    let member = Member { offset: stream.position(), size: entry.size };
                    members.insert(name, Indexed::File(member));
                }
                Kind::Symlink => {
                    let beside =
                        [name.rsplit_once('/').map_or("", |(dir, _)| dir).as_bytes(), b"/"];
                    let target = [&beside.concat(), &entry.link[..]].concat();
                    members.extend(clean(&target).map(|target| (name, Indexed::Link(target))));
                }
                _ => {}
            }
        }
        if budget.entries() == 0 {
            return Err(bad("it has no entries"));
        }
        self.format = match root_like {
            false if members.contains_key("manifest.json") => Format::DockerSave,
            false if members.contains_key("index.json") && members.contains_key("oci-layout") => {
                Format::OciLayout
            }
            _ => Format::Rootfs,
        };
        self.members = members;
        Ok(())
    }

    /// A member by name. Older `docker save` archives use links for repeated layers.
    pub fn member(&self, name: &str) -> Result<Member, EngineError> {
        let name = clean(name.as_bytes()).unwrap_or_default();
        let found = match self.members.get(&name) {
            Some(Indexed::Link(target)) => self.members.get(target),
            other => other,
        };
        match found {
            Some(Indexed::File(member)) => Ok(*member),
            _ => Err(bad(format!("{name:?} is missing from it"))),
        }
    }

    /// All of a root file system archive.
    pub fn whole(&self) -> Member {
        Member { offset: 0, size: self.length }
    }

    pub fn section(&self, member: Member) -> Section<'_> {
        Section { file: &self.file, offset: member.offset, left: member.size }
    }

    /// Reads a small member; one that is named by its digest must have it.
    pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<(T, String), EngineError> {
        let member = self.member(name)?;
        if member.size > JSON_BYTES {
            return Err(bad(format!("{name:?} has more than {JSON_BYTES} bytes")));
        }
        let mut content = Vec::new();
        self.section(member)
            .read_to_end(&mut content)
            .map_err(|error| bad(format!("{name:?} cannot be read: {error}")))?;
        let digest = sha256_hex(&content);
        if let Some(expected) = name.strip_prefix("blobs/sha256/")
            && expected != digest
        {
            return Err(bad(format!("{name:?} does not have its digest")));
        }
        let value = serde_json::from_slice(&content)
            .map_err(|error| bad(format!("{name:?} is not understood: {error}")))?;
        Ok((value, digest))
    }
}

/// Part of a file, read without moving the file's own position.
pub struct Section<'a> {
    file: &'a File,
    offset: u64,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..wanted], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
