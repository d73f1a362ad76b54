//! Lines of JSON as they come from a runner, each checked to be what it should be.

use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::ChannelError;
use crate::limits::MAX_RECORD_BYTES;

/// Whole lines of a runner's answer, several at a time.
///
/// Each line has been read as a `T`. The bytes are handed on as they came, so a `T` should refuse
/// unknown fields.
pub struct RecordStream<T> {
    body: Incoming,
    /// The beginning of a line.
    partial: BytesMut,
    record: PhantomData<fn() -> T>,
}

/// Some lines, and what they say.
#[derive(Debug)]
pub struct Records<T> {
    /// Each with its line end.
    pub lines: Bytes,
    pub records: Vec<T>,
}

impl<T: DeserializeOwned> RecordStream<T> {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, partial: BytesMut::new(), record: PhantomData }
    }

    /// The next lines; none at the end.
    pub async fn next(&mut self) -> Result<Option<Records<T>>, ChannelError> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return match self.partial.is_empty() {
                    true => Ok(None),
                    false => Err(ChannelError::Broken("the answer stopped inside a line".into())),
                };
            };
            let Ok(data) = frame?.into_data() else { continue };
            if let Some(lines) = self.whole_lines(data)? {
                return parse(lines).map(Some);
            }
        }
    }

    fn whole_lines(&mut self, mut data: Bytes) -> Result<Option<Bytes>, ChannelError> {
        let Some(end) = data.iter().rposition(|byte| *byte == b'\n') else {
            self.partial.extend_from_slice(&data);
            if self.partial.len() > MAX_RECORD_BYTES {
                let message = format!("a line has more than {MAX_RECORD_BYTES} bytes");
                return Err(ChannelError::Violation(message));
            }
            return Ok(None);
        };
        let lines = data.split_to(end + 1);
        let before = std::mem::replace(&mut self.partial, BytesMut::from(&data[..]));
        if before.is_empty() {
            return Ok(Some(lines));
        }
        let mut joined = before;
        joined.extend_from_slice(&lines);
        Ok(Some(joined.freeze()))
    }
}

fn parse<T: DeserializeOwned>(lines: Bytes) -> Result<Records<T>, ChannelError> {
    let records: Result<Vec<T>, _> =
        lines.trim_ascii_end().split(|byte| *byte == b'\n').map(serde_json::from_slice).collect();
    match records {
        Ok(records) => Ok(Records { lines, records }),
        Err(error) => Err(ChannelError::violation(&format!("a line is not understood: {error}"))),
    }
}
