//! Fuzz targets: the JSON a hostile runner answers with, and the bytes of a pipe link.

use sandbank_protocol::{
    CommandStatus, DirListing, Ending, Fault, FileStat, Hello, Started, Stats, StdinStatus, Written,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::pipe::{self, Decoder, Mark, Nonce};

/// Read as every type there is; what is understood means the same when it is written again.
pub fn records(data: &[u8]) {
    same_again::<Hello>(data);
    same_again::<Started>(data);
    same_again::<Vec<CommandStatus>>(data);
    same_again::<DirListing>(data);
    same_again::<FileStat>(data);
    same_again::<Stats>(data);
    same_again::<StdinStatus>(data);
    same_again::<Written>(data);
    same_again::<Fault>(data);
    if let Some(ending) = same_again::<Ending>(data) {
        ending.exit_code();
    }
    if let Some(status) = same_again::<CommandStatus>(data) {
        status.ending().and_then(Ending::exit_code);
    }
}

fn same_again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
    data: &[u8],
) -> Option<T> {
    let value: T = serde_json::from_slice(data).ok()?;
    let text = serde_json::to_vec(&value).expect("protocol types are plain data");
    assert_eq!(serde_json::from_slice::<T>(&text).expect("it was written by us"), value);
    Some(value)
}

/// The first byte says how the rest is cut into pieces, which must not matter. Whatever came before
/// it, an open begins a stream that is read as it was written.
pub fn link(data: &[u8]) {
    let Some((cut, garbage)) = data.split_first() else { return };
    let cut = usize::from(*cut).max(1);
    assert_eq!(read_link(garbage, garbage.len().max(1)), read_link(garbage, cut));
    let nonce = Nonce::new([7; 16]);
    let mut wire = [garbage, &nonce.open()].concat();
    pipe::stuff(garbage, &mut wire, garbage.len() * 2);
    let (marks, payload) = read_link(&wire, cut);
    let (mark, at) = marks.last().expect("there is an open");
    assert_eq!(*mark, Mark::Open(nonce));
    assert_eq!(payload[*at..], *garbage);
}

/// Marks with where they were in the payload, and all payload.
fn read_link(wire: &[u8], cut: usize) -> (Vec<(Mark, usize)>, Vec<u8>) {
    let mut decoder = Decoder::default();
    let (mut marks, mut payload) = (Vec::new(), Vec::new());
    for piece in wire.chunks(cut) {
        let mut piece = piece.to_vec();
        let mut rest = piece.as_mut_slice();
        while !rest.is_empty() {
            let step = decoder.decode(rest);
            payload.extend_from_slice(&rest[..step.payload]);
            marks.extend(step.mark.map(|mark| (mark, payload.len())));
            rest = &mut rest[step.taken..];
        }
    }
    (marks, payload)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_links_are_handled() {
        sandbank_test_support::replay_corpus("link", super::link);
    }

    #[test]
    fn the_committed_records_are_handled() {
        sandbank_test_support::replay_corpus("records", super::records);
    }
}
