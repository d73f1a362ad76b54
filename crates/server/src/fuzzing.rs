//! Fuzz targets: what clients write in heads, names, bodies and files.

use std::path::Path;

use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use sandbank_engine::{ImageName, InstanceId, SandboxId};
use sandbank_orchestrator::SandboxKey;
use sandbank_protocol::{CommandId, FrameDecoder};
use serde_json::Value;

use crate::auth;
use crate::connection::Connection;
use crate::ndjson::{Encoding, frame_record};
use crate::{config, dialects, verb_path};

const NAMES: [HeaderName; 8] = [
    header::HOST,
    header::ORIGIN,
    header::AUTHORIZATION,
    header::RANGE,
    header::IF_RANGE,
    header::IF_NONE_MATCH,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
];

/// The first line is the request's target, the others are headers in turn.
pub fn headers(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let target = lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for (line, name) in lines.zip(NAMES.into_iter().cycle()).take(32) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    let mut uri = Uri::try_from(target).unwrap_or_default();
    let path = uri.path().to_owned();
    verb_path::rewrite(&mut uri);
    assert!(uri.path().starts_with('/') || uri.path() == path);
    auth::fuzzing::headers(&headers, &uri, &Connection::default());
    dialects::sandboxd::fuzzing::ranges(&headers);
}

/// A name that is accepted can stand in a path, a URL and a line of the log.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let safe = |name: &str| name.bytes().all(|b| b.is_ascii_graphic()) && !name.contains("..");
    if let Ok(id) = text.parse::<SandboxId>() {
        assert!(safe(id.as_str()) && !text.contains('/') && id.as_str() == text);
    }
    if let Ok(id) = text.parse::<InstanceId>() {
        assert!(safe(id.as_str()) && !text.contains('/'));
    }
    if let Ok(id) = text.parse::<CommandId>() {
        assert!(safe(id.as_str()) && !text.contains('/') && text.len() <= CommandId::MAX_LEN);
    }
    if let Ok(name) = text.parse::<ImageName>() {
        let climbs = name.as_str().split('/').any(|part| matches!(part, "" | "." | ".."));
        assert!(name.as_str().is_ascii() && !climbs && name.as_str() == text);
    }
    if let Ok(key) = text.parse::<SandboxKey>() {
        assert!(!key.as_str().chars().any(char::is_control) && !key.as_str().is_empty());
    }
}

/// A configuration file is understood or refused with a message of one line.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    config::fuzzing::file(Path::new("/etc/sandbank/config.toml"), text);
}

/// Bodies as every route that takes JSON reads them.
pub fn bodies(data: &[u8]) {
    crate::extract::fuzzing::loose(data);
    dialects::sandboxd::fuzzing::bodies(data);
}

/// Whatever frames a runner sends, each becomes exactly one line of JSON.
pub fn lines(data: &[u8]) {
    let mut decoder = FrameDecoder::default();
    decoder.push(bytes::Bytes::copy_from_slice(data));
    while let Ok(Some(frame)) = decoder.next_frame() {
        for encoding in [Encoding::Utf8, Encoding::Base64] {
            let mut out = BytesMut::new();
            frame_record(&mut out, &frame, encoding);
            let line = out.strip_suffix(b"\n").expect("a line has an end");
            assert!(!line.contains(&b'\n'));
            let record: Value = serde_json::from_slice(line).expect("a line is JSON");
            assert!(record["stream"].is_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbank_test_support::replay_corpus;

    #[test]
    fn the_committed_inputs_are_handled() {
        replay_corpus("headers", super::headers);
        replay_corpus("names", super::names);
        replay_corpus("config", super::config);
        replay_corpus("bodies", super::bodies);
        replay_corpus("lines", super::lines);
    }
}
