//! Work of a fixed size for `make instructions`, which counts what the `counted_…` functions
//! execute.

use bytes::{Bytes, BytesMut};
use sandbank_protocol::{Frame, StreamKind};

use super::{Encoding, frame_record};

const FRAMES: u64 = 200;

/// A page of ordinary text with line ends, quotes and a few letters beyond ASCII.
const TEXT: &str = "warning: unused variable: `größe`\n  --> src/main.rs:12:9 \"note\"\r\n";
const REPEATED: usize = 64;

#[inline(never)]
fn counted_ndjson_text(out: &mut BytesMut, data: &Bytes) {
    records(out, data, Encoding::Utf8);
}

#[inline(never)]
fn counted_ndjson_base64(out: &mut BytesMut, data: &Bytes) {
    records(out, data, Encoding::Base64);
}

fn records(out: &mut BytesMut, data: &Bytes, encoding: Encoding) {
    for seq in 1..=FRAMES {
        let frame = Frame::Output {
            seq,
            time_ms: 1_790_000_000_000 + seq,
            stream: StreamKind::Stdout,
            data: data.clone(),
        };
        out.clear();
        frame_record(out, &frame, encoding);
    }
}

#[test]
fn the_counted_work_ends_with_the_last_record_as_text() {
    let mut out = BytesMut::new();
    counted_ndjson_text(&mut out, &Bytes::from(TEXT.repeat(REPEATED)));
    let record: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&record["seq"], &record["data"]), (&FRAMES.into(), &TEXT.repeat(REPEATED).into()));
}

#[test]
fn the_counted_work_ends_with_the_last_record_as_base64() {
    let mut out = BytesMut::new();
    counted_ndjson_base64(&mut out, &Bytes::from(TEXT.repeat(REPEATED)));
    let record: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&record["seq"], &record["encoding"]), (&FRAMES.into(), &"base64".into()));
}
