//! `write`: a whole file, replaced atomically.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbank_channel::{ChannelError, RunnerClient, full_body};

use super::request::Outcome;

pub(super) async fn perform(
    client: &RunnerClient,
    path: &str,
    content_base64: &str,
) -> Result<Outcome, ChannelError> {
    let content = match STANDARD.decode(content_base64) {
        Ok(content) => content,
        Err(error) => {
            let message = format!("content_base64 is not base64: {error}");
            return Ok(Outcome::Error { message });
        }
    };
    client.write_file(path, None, full_body(content)).await?;
    Ok(Outcome::Write { ok: true })
}
