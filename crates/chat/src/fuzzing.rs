//! Fuzz targets: what a model's server streams.

use crate::error::ModelError;
use crate::model::{Decoder, Said};
use crate::sse::Events;
use crate::{anthropic, chat_completions};

/// What is understood does not depend on how it arrives, and there is never more of it than was sent.
pub fn models(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let decoders: [fn() -> Box<dyn Decoder>; 2] = [
        || Box::new(chat_completions::Reader::default()),
        || Box::new(anthropic::Reader::default()),
    ];
    for decoder in decoders {
        let Ok(whole) = read(decoder(), [stream]) else { continue };
        assert!(whole.len() <= stream.len());
        let pieces = stream.chunks(usize::from(*cut) + 1);
        assert_eq!(read(decoder(), pieces), Ok(whole), "in pieces it is something else");
    }
}

fn read<'a>(
    mut decoder: Box<dyn Decoder>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Said>, ModelError> {
    let (mut events, mut said) = (Events::default(), Vec::new());
    for piece in pieces {
        for data in events.push(piece)? {
            if decoder.read(&data, &mut said)? {
                return Ok(said);
            }
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_streams_are_handled() {
        sandbank_test_support::replay_corpus("models", super::models);
    }
}
