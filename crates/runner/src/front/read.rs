//! `read`: the beginning of a file, as base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbank_channel::{ByteRange, ChannelError, RunnerClient};

use super::request::Outcome;
use crate::limits::FRONT_READ_BYTES;

pub(super) async fn perform(
    client: &RunnerClient,
    path: &str,
    max_bytes: Option<u64>,
) -> Result<Outcome, ChannelError> {
    let length = max_bytes.unwrap_or(FRONT_READ_BYTES);
    let range = ByteRange { offset: 0, length: Some(length) };
    let mut download = client.read_file(path, range).await?;
    let truncated = download.stat.size > length;
    let mut content = Vec::new();
    while let Some(chunk) = download.chunk().await? {
        content.extend_from_slice(&chunk);
    }
    Ok(Outcome::Read { content_base64: STANDARD.encode(content), truncated })
}
