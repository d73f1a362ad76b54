//! A command's output as a stream of frames.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandbank_protocol::{Frame, FrameDecoder};

use crate::ChannelError;

pub struct OutputStream {
    body: Incoming,
    decoder: FrameDecoder,
}

impl OutputStream {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, decoder: FrameDecoder::default() }
    }

    /// The next frame; none when the runner closed the stream.
    pub async fn next(&mut self) -> Result<Option<Frame>, ChannelError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                Some(chunk) => {
                    if let Ok(data) = chunk?.into_data() {
                        self.decoder.push(data);
                    }
                }
                None if self.decoder.has_partial_frame() => {
                    return Err(ChannelError::Broken("the output stopped inside a frame".into()));
                }
                None => return Ok(None),
            }
        }
    }
}
