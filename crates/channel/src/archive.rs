//! Archives on their way out of and into a sandbox.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandbank_protocol::Unpacked;

use crate::client::{RunnerClient, encode, json, timed};
use crate::limits::ANSWER_TIMEOUT;
use crate::{ChannelBody, ChannelError, empty_body};

/// A tar stream.
pub struct ArchiveDownload {
    body: Incoming,
}

impl ArchiveDownload {
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

impl RunnerClient {
    pub async fn archive(&self, path: &str) -> Result<ArchiveDownload, ChannelError> {
        let target = format!("/files/archive?path={}", encode(path));
        let call = self.call(Method::GET, &target, empty_body());
        Ok(ArchiveDownload { body: timed(ANSWER_TIMEOUT, call).await??.into_body() })
    }

    /// Unpacks a tar archive below a directory, which is made if it is missing.
    pub async fn unpack(&self, path: &str, body: ChannelBody) -> Result<Unpacked, ChannelError> {
        let target = format!("/files/archive?path={}", encode(path));
        json(self.call(Method::PUT, &target, body).await?).await
    }
}
