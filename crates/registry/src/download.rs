//! Downloads a layer into its place in a file: resumed where it broke off, checked as it comes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ::http::StatusCode;
use sha2::{Digest as _, Sha256};

use crate::endpoint::Endpoint;
use crate::http::Answer;
use crate::limits::{ATTEMPTS, FIRST_WAIT, PROGRESS_BYTES, WRITE_BYTES};
use crate::{Digest, Image, Layer, RegistryError};

/// Where a layer goes.
#[derive(Debug, Clone)]
pub struct Room {
    pub file: Arc<File>,
    pub offset: u64,
}

/// How far a layer is, with the hash of what was written.
struct Written {
    bytes: u64,
    hash: Sha256,
}

impl Written {
    fn nothing() -> Self {
        Self { bytes: 0, hash: Sha256::new() }
    }
}

impl Image {
    /// `tell` hears how many bytes of the layer there are, which may become fewer again. Dropping
    /// the future ends it; the file is the caller's to forget.
    pub async fn download(
        &self,
        layer: &Layer,
        room: Room,
        tell: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), RegistryError> {
        let mut failure = None;
        for endpoint in &self.endpoints {
            match from_endpoint(endpoint, layer, &room, tell).await {
                Err(error @ RegistryError::Write(_)) => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, host = endpoint.host, "a layer was not to be had");
                    failure = Some(error);
                }
                Ok(()) => return Ok(()),
            }
        }
        Err(failure.expect("an image has an endpoint"))
    }
}

async fn from_endpoint(
    endpoint: &Endpoint,
    layer: &Layer,
    room: &Room,
    tell: &(dyn Fn(u64) + Send + Sync),
) -> Result<(), RegistryError> {
    let mut written = Written::nothing();
    let (mut attempt, mut wait) = (1, FIRST_WAIT);
    loop {
        let before = written.bytes;
        let Err(error) = go_on(endpoint, layer, room, &mut written, tell).await else {
            let actual = Digest::finish(written.hash);
            let expected = layer.digest.clone();
            return if actual == expected {
                Ok(())
            } else {
                Err(RegistryError::WrongDigest { what: "a layer", expected, actual })
            };
        };
        if written.bytes >= before + PROGRESS_BYTES {
            (attempt, wait) = (1, FIRST_WAIT);
        }
        if !error.is_passing() || attempt >= ATTEMPTS {
            return Err(error);
        }
        tracing::debug!(%error, attempt, at = written.bytes, "going on with a layer");
        tokio::time::sleep(wait).await;
        (attempt, wait) = (attempt + 1, wait * 2);
    }
}

/// Reads from where it broke off to the end.
async fn go_on(
    endpoint: &Endpoint,
    layer: &Layer,
    room: &Room,
    written: &mut Written,
    tell: &(dyn Fn(u64) + Send + Sync),
) -> Result<(), RegistryError> {
    if written.bytes == layer.size && layer.size > 0 {
        return Ok(());
    }
    let path = format!("blobs/{}", layer.digest);
    let mut answer = endpoint.get(&path, None, written.bytes).await?;
    if !resumes(&answer, written.bytes) {
        *written = Written::nothing();
        tell(0);
    }
    let mut buffer = Vec::with_capacity(WRITE_BYTES);
    let wrong =
        |actual: String| RegistryError::WrongSize { what: "a layer", expected: layer.size, actual };
    let ended = loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if written.bytes + (buffer.len() + chunk.len()) as u64 > layer.size {
            return Err(wrong("more".to_owned()));
        }
        buffer.extend_from_slice(&chunk);
        if buffer.len() >= WRITE_BYTES {
            buffer = write(written, room, buffer).await?;
            tell(written.bytes);
        }
    };
    // What came before it broke off need not come again.
    write(written, room, buffer).await?;
    tell(written.bytes);
    ended?;
    if written.bytes < layer.size {
        return Err(wrong(written.bytes.to_string()));
    }
    Ok(())
}

/// Whether an answer goes on at `from`. Hosts may ignore that they were asked for a part.
fn resumes(answer: &Answer, from: u64) -> bool {
    let range = answer.header("content-range").unwrap_or_default();
    from > 0
        && answer.status == StatusCode::PARTIAL_CONTENT
        && range.starts_with(&format!("bytes {from}-"))
}

async fn write(
    written: &mut Written,
    room: &Room,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>, RegistryError> {
    let (file, at) = (room.file.clone(), room.offset + written.bytes);
    let mut hash = std::mem::take(&mut written.hash);
    let (bytes, wrote) = (buffer.len() as u64, move || {
        file.write_all_at(&buffer, at)?;
        hash.update(&buffer);
        buffer.clear();
        Ok::<_, std::io::Error>((hash, buffer))
    });
    let wrote = tokio::task::spawn_blocking(wrote).await;
    let (hash, buffer) =
        wrote.map_err(std::io::Error::other).flatten().map_err(RegistryError::Write)?;
    written.hash = hash;
    written.bytes += bytes;
    Ok(buffer)
}
