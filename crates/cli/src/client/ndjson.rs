//! Lines out of a streamed body, most of them JSON.

use bytes::{Buf, BytesMut};
use reqwest::Response;
use serde::de::DeserializeOwned;

use super::{Client, ClientError};
use crate::limits::MAX_LOG_LINE_BYTES;

pub(super) struct Lines {
    client: Client,
    response: Response,
    buffer: BytesMut,
    /// Bytes of `buffer` that are known to hold no line end.
    searched: usize,
}

impl Lines {
    pub(super) fn new(client: Client, response: Response) -> Self {
        Self { client, response, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line's value; none at the end of the body. An unfinished last line is dropped.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ClientError> {
        while let Some(line) = self.line().await? {
            if !line.iter().all(u8::is_ascii_whitespace) {
                return self.read(&line).map(Some);
            }
        }
        Ok(None)
    }

    pub(super) fn read<T: DeserializeOwned>(&self, json: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(json).map_err(|error| self.client.nonsense(error.to_string()))
    }

    /// The next line without its end; none at the end of the body.
    pub(super) async fn line(&mut self) -> Result<Option<BytesMut>, ClientError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > MAX_LOG_LINE_BYTES {
                return Err(self.client.nonsense("a line without end"));
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk),
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.client.trouble(&error)),
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end);
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }
}
