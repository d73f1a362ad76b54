//! A strict reader of tar streams: ustar, GNU long names, PAX.
//!
//! The `tar` crate's own iterator holds long names and PAX records of any size in memory and
//! falls back to the header's size when a record is malformed. Here every extension is bounded
//! and whatever two readers could understand differently (two names, two sizes, data behind a
//! link, a broken record) is an error. The crate still parses the fields of a header.

use std::io::{self, Read};

use tar::{EntryType, Header};

/// A long name or a set of PAX records: held in memory, so not the archive's to choose.
const EXTENSION_BYTES: u64 = 1 << 20;

const BLOCK: u64 = 512;
/// Largest size that fits the octal field of a header.
const LARGEST_OCTAL: u64 = 0o777_7777_7777;

#[derive(Debug, thiserror::Error)]
pub enum TarError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it ends in the middle of an entry")]
    Truncated,
    #[error("a header is damaged")]
    Header,
    #[error("an entry contradicts itself: {0}")]
    Ambiguous(&'static str),
    #[error("an entry has an extension of more than {EXTENSION_BYTES} bytes")]
    LargeExtension,
    #[error("it has an entry of the unknown type {0:#04x}")]
    UnknownType(u8),
    #[error("it has sparse files; make it without --sparse")]
    Sparse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Hardlink,
    /// A device or a pipe.
    Special,
}

#[derive(Debug)]
pub struct Entry {
    pub kind: Kind,
    pub path: Vec<u8>,
    pub link: Vec<u8>,
    pub size: u64,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    pub mtime: u64,
}

/// What extension headers say about the next entry.
#[derive(Default)]
struct Extension {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<u64>,
    pax_seen: bool,
}

/// Goes forward without looking, for readers that can seek.
pub trait Skip: Read + Sized {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.by_ref().take(bytes), &mut io::sink())?;
        if skipped < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

pub struct TarStream<R> {
    inner: R,
    /// Bytes of the current entry not yet read, and the padding behind them.
    left: u64,
    padding: u64,
    position: u64,
    /// Whether the end must be marked: nothing else would tell a shortened archive.
    end_marked: bool,
}

impl<R: Skip> TarStream<R> {
    pub fn new(inner: R, end_marked: bool) -> Self {
        Self { inner, left: 0, padding: 0, position: 0, end_marked }
    }

    /// Where the current entry's content starts in the stream.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn into_inner(self) -> R {
        self.inner
    }

    /// The next entry, after skipping what is left of this one.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, TarError> {
        let mut extension = Extension::default();
        loop {
            self.finish_entry()?;
            let Some(header) = self.read_header()? else {
                let dangling =
                    extension.pax_seen || extension.path.is_some() || extension.link.is_some();
                return if dangling { Err(TarError::Truncated) } else { Ok(None) };
            };
            let size = header.entry_size().map_err(|_| TarError::Header)?;
            match header.entry_type() {
                EntryType::GNULongName => {
                    let name = c_string(self.read_extension(size)?);
                    set_once(&mut extension.path, name, "two long names")?;
                }
                EntryType::GNULongLink => {
                    let name = c_string(self.read_extension(size)?);
                    set_once(&mut extension.link, name, "two long link names")?;
                }
                EntryType::XHeader => {
                    if extension.pax_seen {
                        return Err(TarError::Ambiguous("two sets of PAX records"));
                    }
                    extension.pax_seen = true;
                    let records = self.read_extension(size)?;
                    extension.read_pax(&records)?;
                }
                EntryType::XGlobalHeader => {
                    let records = self.read_extension(size)?;
                    check_global(&records)?;
                }
                _ => return self.entry(&header, size, extension).map(Some),
            }
        }
    }

    fn entry(
        &mut self,
        header: &Header,
        size: u64,
        extension: Extension,
    ) -> Result<Entry, TarError> {
        let path = extension.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let kind = kind_of(header.entry_type(), &path)?;
        let size = match extension.size {
            Some(real) if real == size || (size == 0 && real > LARGEST_OCTAL) => real,
            Some(_) => return Err(TarError::Ambiguous("two sizes")),
            None => size,
        };
        if kind != Kind::File && size != 0 {
            return Err(TarError::Ambiguous("content without being a file"));
        }
        // Every reader takes an owner that is left blank for root.
        let owner = |field: &[u8], value: io::Result<u64>| {
            let is_blank = field.iter().all(|byte| matches!(byte, 0 | b' '));
            if is_blank { Ok(0) } else { value.map_err(|_| TarError::Header) }
        };
        let old = header.as_old();
        let entry = Entry {
            kind,
            path,
            link: extension
                .link
                .or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned))
                .unwrap_or_default(),
            size,
            mode: header.mode().map_err(|_| TarError::Header)?,
            uid: extension.uid.map_or_else(|| owner(&old.uid, header.uid()), Ok)?,
            gid: extension.gid.map_or_else(|| owner(&old.gid, header.gid()), Ok)?,
            mtime: extension.mtime.unwrap_or_else(|| header.mtime().unwrap_or(0)),
        };
        if entry.path.contains(&0) || entry.link.contains(&0) {
            return Err(TarError::Ambiguous("a name with a NUL"));
        }
        self.begin_body(size)?;
        Ok(entry)
    }

    fn begin_body(&mut self, size: u64) -> Result<(), TarError> {
        let padded = size.checked_next_multiple_of(BLOCK).ok_or(TarError::Header)?;
        self.position.checked_add(padded).ok_or(TarError::Header)?;
        self.left = size;
        self.padding = padded - size;
        Ok(())
    }

    /// Reads the current entry's content; 0 at its end.
    pub fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, TarError> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let read = self.inner.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(TarError::Truncated);
        }
        self.left -= read as u64;
        self.position += read as u64;
        Ok(read)
    }

    fn finish_entry(&mut self) -> Result<(), TarError> {
        let rest = self.left + self.padding;
        if rest > 0 {
            self.inner.skip(rest).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => TarError::Truncated,
                _ => TarError::Read(error),
            })?;
            self.position += rest;
            (self.left, self.padding) = (0, 0);
        }
        Ok(())
    }

    /// None at the end mark, or at the end of the data where no mark is needed.
    fn read_header(&mut self) -> Result<Option<Header>, TarError> {
        let mut header = Header::new_old();
        let mut filled = 0;
        while filled < BLOCK as usize {
            match self.inner.read(&mut header.as_mut_bytes()[filled..])? {
                0 if filled == 0 && !self.end_marked => return Ok(None),
                0 => return Err(TarError::Truncated),
                read => filled += read,
            }
        }
        self.position += BLOCK;
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum: u32 = header.as_bytes()[..148]
            .iter()
            .chain(&header.as_bytes()[156..])
            .map(|byte| u32::from(*byte))
            .sum::<u32>()
            + 8 * u32::from(b' ');
        if header.cksum().ok() != Some(sum) {
            return Err(TarError::Header);
        }
        Ok(Some(header))
    }

    fn read_extension(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        if size > EXTENSION_BYTES {
            return Err(TarError::LargeExtension);
        }
        self.begin_body(size)?;
        let mut content = vec![0; size as usize];
        let mut filled = 0;
        while filled < content.len() {
            filled += self.read_body(&mut content[filled..])?;
        }
        Ok(content)
    }
}

fn kind_of(entry_type: EntryType, path: &[u8]) -> Result<Kind, TarError> {
    Ok(match entry_type {
        // Before ustar a directory was a file whose name ends in a slash.
        EntryType::Regular if path.ends_with(b"/") => Kind::Directory,
        EntryType::Regular | EntryType::Continuous => Kind::File,
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink,
        EntryType::Link => Kind::Hardlink,
        EntryType::Char | EntryType::Block | EntryType::Fifo => Kind::Special,
        EntryType::GNUSparse => return Err(TarError::Sparse),
        other => return Err(TarError::UnknownType(other.as_byte())),
    })
}

fn set_once<T>(slot: &mut Option<T>, value: T, what: &'static str) -> Result<(), TarError> {
    match slot.replace(value) {
        Some(_) => Err(TarError::Ambiguous(what)),
        None => Ok(()),
    }
}

fn c_string(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

/// Calls `each` with every `length key=value\n` record.
fn pax_records<'a>(
    mut rest: &'a [u8],
    mut each: impl FnMut(&'a str, &'a [u8]) -> Result<(), TarError>,
) -> Result<(), TarError> {
    const BROKEN: TarError = TarError::Ambiguous("a broken PAX record");
    while !rest.is_empty() {
        let space = rest.iter().take(20).position(|byte| *byte == b' ').ok_or(BROKEN)?;
        let length: usize = std::str::from_utf8(&rest[..space])
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or(BROKEN)?;
        let record = rest.get(space + 1..length).ok_or(BROKEN)?;
        let record = record.strip_suffix(b"\n").ok_or(BROKEN)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or(BROKEN)?;
        let key = std::str::from_utf8(&record[..equals]).map_err(|_| BROKEN)?;
        each(key, &record[equals + 1..])?;
        rest = &rest[length..];
    }
    Ok(())
}

fn pax_number(value: &[u8]) -> Result<u64, TarError> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok()).ok_or(TarError::Ambiguous("a broken PAX number"))
}

impl Extension {
    fn read_pax(&mut self, records: &[u8]) -> Result<(), TarError> {
        pax_records(records, |key, value| match key {
            "path" => set_once(&mut self.path, value.to_vec(), "two names"),
            "linkpath" => set_once(&mut self.link, value.to_vec(), "two link names"),
            "size" => set_once(&mut self.size, pax_number(value)?, "two sizes"),
            "uid" => set_once(&mut self.uid, pax_number(value)?, "two owners"),
            "gid" => set_once(&mut self.gid, pax_number(value)?, "two groups"),
            "mtime" => {
                // Fractions and years before 1970 do not matter to a sandbox.
                let seconds = value.split(|byte| *byte == b'.').next().unwrap_or_default();
                self.mtime = Some(pax_number(seconds).unwrap_or(0));
                Ok(())
            }
            _ if key.starts_with("GNU.sparse.") => Err(TarError::Sparse),
            _ => Ok(()),
        })
    }
}

/// Global records that would change the meaning of every entry behind them are not supported.
fn check_global(records: &[u8]) -> Result<(), TarError> {
    pax_records(records, |key, _| match key {
        "path" | "linkpath" | "size" => Err(TarError::Ambiguous("a name or size for all entries")),
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(io::Cursor<Vec<u8>>);

    impl Read for Bytes {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Skip for Bytes {}

    #[test]
    fn a_name_that_no_entry_follows_is_a_shortened_archive() {
        for kind in [EntryType::GNULongName, EntryType::GNULongLink] {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(5);
            header.set_cksum();
            let mut archive = header.as_bytes().to_vec();
            archive.extend_from_slice(b"name\0");
            archive.resize(1024, 0);
            let named = archive.clone();
            archive.resize(2048, 0);
            let read =
                |bytes: Vec<u8>| TarStream::new(Bytes(io::Cursor::new(bytes)), true).next_entry();
            assert!(matches!(read(archive), Err(TarError::Truncated)), "{kind:?}");
            let mut file = Header::new_gnu();
            file.set_path("x").expect("it is short");
            file.set_mode(0o644);
            file.set_size(0);
            file.set_cksum();
            let whole = [&named[..], file.as_bytes(), &[0; 1024]].concat();
            assert!(matches!(read(whole), Ok(Some(_))), "{kind:?}");
        }
    }
}
