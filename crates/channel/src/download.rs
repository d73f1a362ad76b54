//! A file on its way out of a sandbox.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandbank_protocol::FileStat;

use crate::ChannelError;

pub struct FileDownload {
    /// Of the whole file, whatever range was asked for.
    pub stat: FileStat,
    body: Incoming,
}

impl FileDownload {
    pub(crate) fn new(stat: FileStat, body: Incoming) -> Self {
        Self { stat, body }
    }

    /// The next chunk; none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ChannelError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
