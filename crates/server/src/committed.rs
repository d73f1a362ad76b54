//! Generated files that are committed: a test fails when one drifts from the code.

use std::path::Path;

/// With `SANDBANK_BLESS=1` the file is rewritten instead.
pub(crate) fn check(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("SANDBANK_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().expect("has a directory")).unwrap();
        std::fs::write(&file, expected).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "{path} differs from the code; regenerate it with SANDBANK_BLESS=1 cargo test -p sandbank-server"
    );
}
