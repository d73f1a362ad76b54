//! Fuzz targets: paths as clients write them.

use crate::limits::{MAX_NAME_BYTES, MAX_PATH_BYTES};
use crate::{RelPath, RootNames};

/// Whatever is accepted stays below the root however it is read.
pub fn paths(data: &[u8]) {
    let names = RootNames::new("/vercel/sandbox/workspace", ["/workspace", "/home/user/"]);
    let Ok(path) = RelPath::parse(data, &names) else { return };
    let bytes = path.as_bytes();
    assert!(bytes.len() <= MAX_PATH_BYTES && !bytes.contains(&0) && !bytes.starts_with(b"/"));
    for name in bytes.split(|byte| *byte == b'/') {
        assert!(path.is_root() || !matches!(name, b"" | b"." | b".."));
        assert!(name.len() <= MAX_NAME_BYTES);
    }
    if !path.is_root() {
        assert_eq!(RelPath::parse(bytes, &names).as_ref(), Ok(&path), "it means itself");
    }
    assert!(path.ancestors().count() <= MAX_PATH_BYTES);
    assert!(!path.to_string().chars().any(char::is_control), "it can be shown");
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_paths_are_handled() {
        sandbank_test_support::replay_corpus("paths", super::paths);
    }
}
