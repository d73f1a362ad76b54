//! One line per frame. Output records have sandboxd's fields first; everything else has the
//! stream `control`, which its clients skip.

use std::fmt::Write;

use base64_simd::{AsOut, STANDARD};
use bytes::{Bytes, BytesMut};
use sandbank_protocol::{Ending, Frame, StreamKind};
use serde::Deserialize;
use utoipa::ToSchema;

use super::escape::push_escaped;

/// How bytes are put into JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// Bytes that are not UTF-8 become U+FFFD.
    #[default]
    Utf8,
    /// Exact.
    Base64,
}

/// Appends the frame's line.
pub(crate) fn frame_record(out: &mut BytesMut, frame: &Frame, encoding: Encoding) {
    match frame {
        Frame::Output { seq, time_ms, stream, data } => {
            output_record(out, *stream, data, encoding);
            text(out, format_args!("\"seq\":{seq},\"timeMs\":{time_ms}}}\n"));
        }
        Frame::Dropped { seq, frames, bytes } => text(
            out,
            format_args!(
                "{{\"stream\":\"control\",\"type\":\"dropped\",\"frames\":{frames},\"bytes\":{bytes},\"seq\":{seq}}}\n"
            ),
        ),
        Frame::Ended { seq, time_ms, ending } => {
            ending_record(out, &parse_ending(ending), *seq, Some(*time_ms));
        }
        Frame::Heartbeat { seq, .. } => text(
            out,
            format_args!("{{\"stream\":\"control\",\"type\":\"heartbeat\",\"seq\":{seq}}}\n"),
        ),
    }
}

/// The last line: how the command ended.
pub(crate) fn ending_record(out: &mut BytesMut, ending: &Ending, seq: u64, time_ms: Option<u64>) {
    let record = serde_json::json!({
        "stream": "control",
        "type": "ending",
        "ending": ending,
        "exitCode": ending.exit_code(),
        "seq": seq,
        "timeMs": time_ms,
    });
    text(out, format_args!("{record}\n"));
}

/// Of an output record, beside its data.
const FRAMING_BYTES: usize = 128;

fn output_record(out: &mut BytesMut, stream: StreamKind, data: &Bytes, encoding: Encoding) {
    // At once for the whole line: growing on the way would copy it.
    out.reserve(
        FRAMING_BYTES
            + match encoding {
                Encoding::Utf8 => data.len() + data.len() / 16,
                Encoding::Base64 => STANDARD.encoded_length(data.len()),
            },
    );
    out.extend_from_slice(match stream {
        StreamKind::Stdout => b"{\"stream\":\"stdout\",\"data\":\"".as_slice(),
        StreamKind::Stderr => b"{\"stream\":\"stderr\",\"data\":\"",
        StreamKind::Pty => b"{\"stream\":\"pty\",\"data\":\"",
    });
    match encoding {
        Encoding::Utf8 => {
            match simdutf8::basic::from_utf8(data) {
                Ok(text) => push_escaped(out, text),
                Err(_) => push_escaped(out, &String::from_utf8_lossy(data)),
            }
            out.extend_from_slice(b"\",");
        }
        Encoding::Base64 => {
            push_base64(out, data);
            out.extend_from_slice(b"\",\"encoding\":\"base64\",");
        }
    }
}

fn push_base64(out: &mut BytesMut, data: &[u8]) {
    let start = out.len();
    out.resize(start + STANDARD.encoded_length(data.len()), 0);
    let _ = STANDARD.encode(data, out[start..].as_out());
}

/// A runner may say anything; what makes no sense is a lost command.
fn parse_ending(json: &[u8]) -> Ending {
    serde_json::from_slice(json)
        .unwrap_or_else(|_| Ending::Lost { reason: "its runner told no valid ending".to_owned() })
}

fn text(out: &mut BytesMut, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a growing buffer takes everything");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(frame: &Frame, encoding: Encoding) -> Value {
        let mut out = BytesMut::new();
        frame_record(&mut out, frame, encoding);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1, "one line per frame");
        assert_eq!(out.last(), Some(&b'\n'));
        serde_json::from_slice(&out).unwrap()
    }

    fn stdout(data: &'static [u8]) -> Frame {
        let data = Bytes::from_static(data);
        Frame::Output { seq: 7, time_ms: 9, stream: StreamKind::Stdout, data }
    }

    #[test]
    fn output_has_sandboxds_fields_and_a_number() {
        let record = line(&stdout(b"h\xc3\xa9llo\n"), Encoding::Utf8);
        assert_eq!(record, json!({"stream":"stdout","data":"héllo\n","seq":7,"timeMs":9}));
    }

    #[test]
    fn odd_bytes_stay_one_valid_line_and_base64_is_exact() {
        let odd = b"\0\xff\xfe\x1b[31m\r\"\\\n\xe2\x82";
        let record = line(&stdout(odd), Encoding::Utf8);
        assert_eq!(record["data"], "\0\u{fffd}\u{fffd}\u{1b}[31m\r\"\\\n\u{fffd}");
        let record = line(&stdout(odd), Encoding::Base64);
        assert_eq!(record["encoding"], "base64");
        assert_eq!(STANDARD.decode_to_vec(record["data"].as_str().unwrap()).unwrap(), odd);
    }

    #[test]
    fn everything_else_is_a_control_record() {
        let dropped = Frame::Dropped { seq: 3, frames: 3, bytes: 500 };
        let expected = json!({"stream":"control","type":"dropped","frames":3,"bytes":500,"seq":3});
        assert_eq!(line(&dropped, Encoding::Utf8), expected);
        let ended = |ending: &'static str| Frame::Ended {
            seq: 8,
            time_ms: 1,
            ending: Bytes::from_static(ending.as_bytes()),
        };
        let record = line(&ended("{\"kind\":\"exited\",\"code\":3}"), Encoding::Utf8);
        assert_eq!((&record["type"], &record["exitCode"]), (&json!("ending"), &json!(3)));
        let record = line(&ended("{\"kind\":\"exited\",\n"), Encoding::Utf8);
        assert_eq!(record["ending"]["kind"], "lost");
        assert_eq!(record["exitCode"], Value::Null);
        let beat = line(&Frame::Heartbeat { seq: 8, time_ms: 1 }, Encoding::Utf8);
        assert_eq!(beat["type"], "heartbeat");
    }
}
