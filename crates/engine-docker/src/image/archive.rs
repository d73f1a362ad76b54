//! What kind of archive a file is: the root of a file system, or images with their descriptions.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use sandbank_engine::EngineError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `docker save`
    Images,
    Root,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Entries that are looked at: a description is among the first or the last of an archive, and
/// the last of one that is no larger than this is found.
const MOST_ENTRIES: usize = 200_000;

pub(super) fn compression(file: &mut File) -> io::Result<Compression> {
    let mut magic = [0; 4];
    let read = file.read(&mut magic)?;
    file.rewind()?;
    Ok(match &magic[..read] {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
        _ => Compression::None,
    })
}

pub(super) fn reader_of(
    file: impl Read + Send + 'static,
    compression: Compression,
) -> io::Result<Box<dyn Read + Send>> {
    let file = BufReader::with_capacity(1 << 16, file);
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Compression::Zstd => Box::new(zstd::Decoder::new(file)?),
    })
}

/// Blocking: reads the archive up to what tells.
pub(super) fn kind(path: &Path) -> Result<(Kind, Compression), EngineError> {
    let open = || -> io::Result<_> {
        let mut file = File::open(path)?;
        let compression = compression(&mut file)?;
        Ok((reader_of(file, compression)?, compression))
    };
    let (reader, compression) = open().map_err(EngineError::io("open the archive"))?;
    let bad = |error: io::Error| EngineError::BadImage(error.to_string());
    let mut archive = tar::Archive::new(reader);
    let (mut entries, mut layout) = (0, false);
    for entry in archive.entries().map_err(bad)? {
        let entry = entry.map_err(bad)?;
        entries += 1;
        let path = entry.path_bytes();
        match path.strip_prefix(b"./").unwrap_or(&path) {
            b"manifest.json" => return Ok((Kind::Images, compression)),
            b"oci-layout" => layout = true,
            _ => {}
        }
        if entries > MOST_ENTRIES {
            break;
        }
    }
    match (entries, layout) {
        (0, _) => Err(EngineError::BadImage("there is nothing in it".to_owned())),
        // Newer engines read it.
        (_, true) => Ok((Kind::Images, compression)),
        (_, false) => Ok((Kind::Root, compression)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(names: &[&str]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(2);
            archive.append_data(&mut header, name, &b"{}"[..]).unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn kind_of(content: &[u8]) -> Result<(Kind, Compression), EngineError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        kind(file.path())
    }

    #[test]
    fn archives_are_told_by_what_is_in_them() {
        let saved = archive(&["abc/layer.tar", "manifest.json"]);
        assert_eq!(kind_of(&saved).unwrap(), (Kind::Images, Compression::None));
        let root = archive(&["bin/sh", "etc/passwd"]);
        let packed = zstd::encode_all(&root[..], 1).unwrap();
        assert_eq!(kind_of(&packed).unwrap(), (Kind::Root, Compression::Zstd));
        let layout = archive(&["oci-layout", "index.json"]);
        assert_eq!(kind_of(&layout).unwrap().0, Kind::Images);
        assert!(matches!(kind_of(b"nothing of the kind"), Err(EngineError::BadImage(_))));
        assert!(matches!(kind_of(b""), Err(EngineError::BadImage(_))));
    }
}
