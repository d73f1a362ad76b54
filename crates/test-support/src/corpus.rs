//! The committed inputs of the fuzz targets, replayed by ordinary tests.

use std::path::Path;

/// Runs every input in `fuzz/corpus/<target>` through the target.
pub fn replay_corpus(target: &str, run: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&directory);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("a directory can be read to its end").path();
        let input = std::fs::read(&path).expect("a committed file can be read");
        println!("{}", path.display());
        run(&input);
        count += 1;
    }
    assert!(count > 0, "there are no inputs for {target}");
}
