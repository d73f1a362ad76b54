//! The body of `write-many`: records of header length (u32, big-endian), JSON header, content.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// A longer header is refused before it is read.
pub const MAX_HEADER_BYTES: u32 = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHeader {
    pub path: String,
    pub size: u64,
    #[serde(default = "default_mode")]
    pub mode: u32,
}

fn default_mode() -> u32 {
    0o644
}

/// Frames an already encoded header; the content follows as it is.
pub fn encode_header(header_json: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + header_json.len());
    out.put_u32(u32::try_from(header_json.len()).expect("headers are far below 4 GiB"));
    out.put_slice(header_json);
    out.freeze()
}
