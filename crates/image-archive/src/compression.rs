//! Tells how a stream is compressed by its first bytes, and undoes it.

use std::io::{self, BufRead, Read};

use sandbank_engine::EngineError;

use crate::bad;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Looks at the start of a stream without consuming it.
pub fn detect(reader: &mut impl BufRead) -> Result<Compression, EngineError> {
    let head = reader.fill_buf().map_err(|error| bad(format!("it cannot be read: {error}")))?;
    match head {
        [0x1f, 0x8b, ..] => Ok(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Compression::Zstd),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            Err(bad("it is compressed with xz; use gzip or zstd"))
        }
        [b'B', b'Z', b'h', ..] => Err(bad("it is compressed with bzip2; use gzip or zstd")),
        _ => Ok(Compression::None),
    }
}

/// The uncompressed stream. The zstd window is bounded by the library's default of 128 MiB.
pub fn decoder<'a>(mut reader: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, EngineError> {
    Ok(match detect(&mut reader)? {
        Compression::None => Box::new(reader),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Compression::Zstd => Box::new(
            zstd::stream::read::Decoder::with_buffer(reader)
                .map_err(EngineError::io("start the zstd decoder"))?,
        ),
    })
}

/// Passes bytes on, counts them and tells a callback.
pub struct Counted<R, F> {
    inner: R,
    tell: F,
}

impl<R: Read, F: FnMut(u64)> Counted<R, F> {
    pub fn new(inner: R, tell: F) -> Self {
        Self { inner, tell }
    }
}

impl<R: Read, F: FnMut(u64)> Read for Counted<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.tell)(read as u64);
        Ok(read)
    }
}
