//! A request body on its way into files, in chunks.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandbank_protocol::{Fault, FaultCode};

use crate::limits::FILE_CHUNK_BYTES;

pub(super) struct Upload {
    body: Incoming,
    /// Bytes handed out since others could run.
    unyielded: usize,
}

impl Upload {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, unyielded: 0 }
    }

    /// The next bytes; none at the end. A body that breaks off is an error, not an end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.unyielded >= FILE_CHUNK_BYTES {
            self.unyielded = 0;
            tokio::task::yield_now().await;
        }
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| {
                Fault::new(FaultCode::Invalid, format!("the upload broke off: {error}"))
            })?;
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                self.unyielded += data.len();
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// An upload read in pieces of known size.
pub(super) struct Records {
    upload: Upload,
    buffer: BytesMut,
}

impl Records {
    pub(super) fn new(body: Incoming) -> Self {
        Self { upload: Upload::new(body), buffer: BytesMut::new() }
    }

    /// Whether nothing is left.
    pub(super) async fn at_end(&mut self) -> Result<bool, Fault> {
        Ok(self.buffer.is_empty() && !self.fill().await?)
    }

    /// Exactly `size` bytes, gathered; for small pieces.
    pub(super) async fn exactly(&mut self, size: usize) -> Result<Bytes, Fault> {
        while self.buffer.len() < size {
            if !self.fill().await? {
                return Err(cut_short());
            }
        }
        Ok(self.buffer.split_to(size).freeze())
    }

    /// Some bytes, at most `max` of them; `max` is not zero.
    pub(super) async fn some(&mut self, max: u64) -> Result<Bytes, Fault> {
        if self.buffer.is_empty() && !self.fill().await? {
            return Err(cut_short());
        }
        let size = usize::try_from(max).unwrap_or(usize::MAX).min(self.buffer.len());
        Ok(self.buffer.split_to(size).freeze())
    }

    async fn fill(&mut self) -> Result<bool, Fault> {
        let chunk = self.upload.chunk().await?;
        if let Some(chunk) = &chunk {
            self.buffer.extend_from_slice(chunk);
        }
        Ok(chunk.is_some())
    }
}

fn cut_short() -> Fault {
    Fault::new(FaultCode::Invalid, "the upload ends inside a record")
}
