//! The body of `files:write` as a batch for the runner, which writes all of it or nothing.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use sandbank_channel::{ChannelBody, stream_body};
use sandbank_protocol::file_batch::{FileHeader, encode_header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::path_rule;
use crate::error::{ApiError, ApiResult};
use crate::extract::bad_json;
use crate::limits::MAX_FILES_PER_WRITE;

const DEFAULT_MODE: u32 = 0o644;

/// Node's decoder takes both alphabets, with or without padding.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct WriteBody<'a> {
    #[serde(borrow, default)]
    files: Option<Vec<WriteFile<'a>>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WriteFile<'a> {
    /// Absolute, below the workspace.
    #[serde(borrow, default)]
    path: Cow<'a, str>,
    #[serde(borrow, default)]
    content_base64: Cow<'a, str>,
    /// Permission bits; 420 (0644) when absent.
    mode: Option<u32>,
}

/// Checked and decoded: headers and contents in turn.
#[derive(Debug)]
pub(super) struct Batch(Vec<Bytes>);

impl Batch {
    pub(super) fn read(json: &[u8]) -> ApiResult<Self> {
        let required = || ApiError::bad_request("files_required", "files is required.");
        let body: WriteBody<'_> = match serde_json::from_slice(json) {
            Ok(body) => body,
            // As sandboxd: anything but an object is an empty one.
            Err(_) if json.iter().all(u8::is_ascii_whitespace) => WriteBody::default(),
            Err(error) if error.is_data() && !starts_an_object(json) => return Err(required()),
            Err(error) => return Err(bad_json(&error)),
        };
        let files = body.files.filter(|files| !files.is_empty()).ok_or_else(required)?;
        if files.len() > MAX_FILES_PER_WRITE {
            let message = format!("one request writes at most {MAX_FILES_PER_WRITE} files");
            return Err(ApiError::bad_request("too_many_files", message));
        }
        let mut pieces = Vec::with_capacity(files.len() * 2);
        for file in &files {
            let content = decode(&file.content_base64).ok_or_else(|| not_base64(&file.path))?;
            pieces.push(header(file, content.len())?);
            pieces.push(content);
        }
        Ok(Self(pieces))
    }

    /// Cheap: the contents are shared, so that a broken channel can be tried again.
    pub(super) fn body(&self) -> ChannelBody {
        stream_body(futures_util::stream::iter(self.0.clone().into_iter().map(Ok)))
    }
}

fn starts_an_object(json: &[u8]) -> bool {
    json.trim_ascii_start().first() == Some(&b'{')
}

fn header(file: &WriteFile<'_>, size: usize) -> ApiResult<Bytes> {
    let mode = file.mode.unwrap_or(DEFAULT_MODE);
    if mode > 0o777 {
        let message = format!("the mode of {:?} has more than permission bits", file.path);
        return Err(ApiError::bad_request("bad_mode", message));
    }
    let path = path_rule::absolute(&file.path)?.to_owned();
    let header = FileHeader { path, size: size as u64, mode };
    Ok(encode_header(&serde_json::to_vec(&header).expect("plain data")))
}

fn decode(text: &str) -> Option<Bytes> {
    let strict = |text: &str| STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok();
    let decoded = strict(text).or_else(|| {
        let joined: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        (joined.len() < text.len()).then(|| strict(&joined)).flatten()
    });
    decoded.map(Bytes::from)
}

fn not_base64(path: &str) -> ApiError {
    let message = format!("the content of {path:?} is not base64");
    ApiError::bad_request("bad_base64", message)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::*;

    fn error(json: &str) -> ApiError {
        Batch::read(json.as_bytes()).unwrap_err()
    }

    #[test]
    fn files_are_required_however_they_are_missing() {
        for body in ["", "{}", "[]", "7", "null", "{\"files\":[]}", "{\"files\":null}"] {
            assert_eq!(error(body).message, "files is required.", "{body}");
        }
        assert_eq!(error("{").code, "bad_json");
        assert_eq!(error("{\"files\":[1]}").code, "bad_body");
    }

    #[test]
    fn contents_are_decoded_as_node_does() {
        for text in ["aGk/", "aGk_", " aG\nk/ "] {
            assert_eq!(decode(text).unwrap(), "hi?", "{text:?}");
        }
        assert_eq!(decode("aGk").unwrap(), "hi");
        assert_eq!(decode("").unwrap(), "");
        assert!(decode("$$$").is_none());
    }

    #[test]
    fn paths_and_modes_are_checked_before_anything_is_sent() {
        let write = |path: &str, mode: u32| {
            let body = json!({"files":[{"path": path, "contentBase64": "", "mode": mode}]});
            Batch::read(body.to_string().as_bytes()).map_err(|error| error.code)
        };
        assert!(write("/workspace/a", 0o755).is_ok());
        assert_eq!(write("/etc/passwd", 0o644).unwrap_err(), "outside_workspace");
        assert_eq!(write("/workspace/a", 0o4755).unwrap_err(), "bad_mode");
    }

    #[tokio::test]
    async fn the_batch_is_header_and_content_in_turn() {
        let body = json!({"files":[{"path":"/workspace/a","contentBase64":"aGk="}]}).to_string();
        let batch = Batch::read(body.as_bytes()).unwrap();
        let sent = batch.body().collect().await.unwrap().to_bytes();
        let length = u32::from_be_bytes(sent[..4].try_into().unwrap()) as usize;
        let header: FileHeader = serde_json::from_slice(&sent[4..4 + length]).unwrap();
        assert_eq!((header.path.as_str(), header.size, header.mode), ("/workspace/a", 2, 0o644));
        assert_eq!(&sent[4 + length..], b"hi");
    }
}
