//! Fuzz targets: the JSON a hostile runner answers with.

use sandbank_protocol::{
    CommandStatus, DirListing, Ending, Fault, FileStat, Hello, Started, Stats, StdinStatus, Written,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_records_are_handled() {
        sandbank_test_support::replay_corpus("records", super::records);
    }
}
