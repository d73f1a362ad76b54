//! Counts what a log stream delivers without decoding it, so that the reader is not what is
//! measured. Short lines are parsed; a long one can only be output, and its `data` is measured.

use anyhow::Context;
use memchr::memchr;
use memchr::memmem::Finder;
use serde_json::Value;

use crate::limits::MAX_LINE_BYTES;

/// Below this a line is parsed as JSON: control records are shorter.
const PARSED_BYTES: usize = 512;

pub(crate) struct LogLines {
    base64: bool,
    data_field: Finder<'static>,
    /// A line whose end has not come yet.
    partial: Vec<u8>,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) ended: bool,
}

impl LogLines {
    /// Text must be free of characters that JSON escapes.
    pub(crate) fn new(base64: bool) -> Self {
        let data_field = Finder::new(b"\"data\":\"");
        Self { base64, data_field, partial: Vec::new(), delivered: 0, dropped: 0, ended: false }
    }

    pub(crate) fn push(&mut self, mut chunk: &[u8]) -> anyhow::Result<()> {
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.partial.is_empty() {
                self.line(line)?;
            } else {
                self.partial.extend_from_slice(line);
                let mut whole = std::mem::take(&mut self.partial);
                self.line(&whole)?;
                whole.clear();
                self.partial = whole;
            }
            chunk = rest;
        }
        let length = self.partial.len() + chunk.len();
        anyhow::ensure!(length <= MAX_LINE_BYTES, "a log line of more than {length} bytes");
        self.partial.extend_from_slice(chunk);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> anyhow::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        if line.len() >= PARSED_BYTES {
            self.delivered += self.output(line).context("a long log line without data")?;
            return Ok(());
        }
        let record: Value = serde_json::from_slice(line).context("a log line that is not JSON")?;
        if record["stream"] != "control" {
            self.delivered += self.output(line).context("a log line without data")?;
            return Ok(());
        }
        match record["type"].as_str() {
            Some("dropped") => self.dropped += record["bytes"].as_u64().unwrap_or_default(),
            Some("ending") => self.ended = true,
            _ => {}
        }
        Ok(())
    }

    /// Bytes of the command's output in a record.
    fn output(&self, line: &[u8]) -> Option<u64> {
        let start = self.data_field.find(line)? + self.data_field.needle().len();
        let data = &line[start..][..memchr(b'"', &line[start..])?];
        if !self.base64 {
            return Some(data.len() as u64);
        }
        let padding = data.iter().rev().take_while(|byte| **byte == b'=').count();
        Some((data.len() as u64 / 4 * 3).saturating_sub(padding as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> (Vec<u8>, u64) {
        // 600 base64 characters with one of padding are 449 bytes; "aGk=" is 2.
        let long = format!("{}=", "A".repeat(599));
        let text = [
            r#"{"stream":"stdout","data":"aGk=","seq":1,"timeMs":5}"#.to_owned(),
            format!(r#"{{"seq":2,"stream":"stdout","data":"{long}","timeMs":5}}"#),
            r#"{"stream":"control","type":"dropped","frames":2,"bytes":70,"seq":4}"#.to_owned(),
            r#"{"stream":"control","type":"heartbeat"}"#.to_owned(),
            r#"{"stream":"control","type":"ending","ending":{"kind":"exited","code":0}}"#
                .to_owned(),
        ];
        (format!("{}\n", text.join("\n")).into_bytes(), 451)
    }

    #[test]
    fn any_chunking_gives_the_same_counts() {
        let (wire, expected) = stream();
        for size in [1, 7, 64, wire.len()] {
            let mut lines = LogLines::new(true);
            wire.chunks(size).for_each(|chunk| lines.push(chunk).unwrap());
            assert_eq!((lines.delivered, lines.dropped, lines.ended), (expected, 70, true));
        }
    }

    #[test]
    fn text_counts_as_it_stands() {
        let mut lines = LogLines::new(false);
        lines.push(b"{\"stream\":\"stdout\",\"data\":\"sss\"}\n").unwrap();
        assert_eq!(lines.delivered, 3);
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        assert!(LogLines::new(true).push(b"<html>\n").is_err());
        assert!(LogLines::new(true).push(&[b'x'; MAX_LINE_BYTES + 1]).is_err());
    }
}
