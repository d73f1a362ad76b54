//! A command's output on its way to our stdout and stderr, as bytes or as JSON records.

use std::io::Write;

use sandbank_protocol::Ending;
use serde_json::{Value, json};

use crate::client::{Follow, OutputStream, Record};
use crate::failure::{Exit, Failure};
use crate::ui::{Ui, text};

/// Writes until the command's ending.
pub(super) async fn write_all(ui: Ui, mut follow: Follow) -> Result<Ending, Failure> {
    while let Some(record) = follow.next().await? {
        if let Record::Ended { ending } = record {
            return Ok(ending);
        }
        write(&ui, &record)?;
    }
    Err(Failure::new(Exit::Internal, "the server did not say how the command ended"))
}

pub(crate) fn write(ui: &Ui, record: &Record) -> Result<(), Failure> {
    match record {
        Record::Output { .. } if ui.json => ui.record(&as_json(record)),
        Record::Output { stream: OutputStream::Stderr, data, .. } => {
            let mut stderr = std::io::stderr().lock();
            stderr.write_all(data).map_err(Failure::io("write to standard error"))
        }
        Record::Output { data, .. } => ui.bytes(data),
        Record::Dropped { .. } | Record::Ended { .. } if ui.json => ui.record(&as_json(record)),
        Record::Dropped { bytes } => {
            ui.note(&format!("{} of output are no longer kept", text::bytes(*bytes)));
            Ok(())
        }
        Record::Lost { reason } => {
            ui.note(&format!("{}; trying again", text::printable(reason)));
            Ok(())
        }
        Record::Resumed => {
            ui.note("connected again");
            Ok(())
        }
        Record::Ended { .. } => Ok(()),
    }
}

/// `data` when it is text, `dataBase64` when it is not.
fn as_json(record: &Record) -> Value {
    match record {
        Record::Output { seq, time_ms, stream, data } => {
            let mut value = json!({
                "type": "output", "stream": stream.name(), "seq": seq, "timeMs": time_ms,
            });
            match std::str::from_utf8(data) {
                Ok(text) => value["data"] = json!(text),
                Err(_) => {
                    use base64::Engine as _;
                    let encoded = base64::engine::general_purpose::STANDARD.encode(data);
                    value["dataBase64"] = json!(encoded);
                }
            }
            value
        }
        Record::Dropped { bytes } => json!({ "type": "dropped", "bytes": bytes }),
        Record::Ended { ending } => {
            json!({ "type": "ended", "ending": ending, "exitCode": ending.exit_code() })
        }
        Record::Lost { .. } | Record::Resumed => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn text_is_shown_as_text_and_other_bytes_as_base64() {
        let output = |data: &'static [u8]| Record::Output {
            seq: 1,
            time_ms: 2,
            stream: OutputStream::Stdout,
            data: Bytes::from_static(data),
        };
        assert_eq!(as_json(&output("ü".as_bytes()))["data"], "ü");
        assert_eq!(as_json(&output(b"\xff\x00"))["dataBase64"], "/wA=");
    }
}
