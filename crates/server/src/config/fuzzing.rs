//! The configuration files: ours, and Sandkasten's.

use std::path::Path;

use super::{file, sandkasten, table};

pub(crate) fn file(path: &Path, text: &str) {
    match file::parse(path, text) {
        Ok(values) => {
            for (key, text) in &values {
                let setting = table::row(key);
                let _ = setting.expect("only known keys are read").parse(text);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let mut taken = sandkasten::Sandkasten::default();
    if let Err(error) = sandkasten::take_file(path, text, &mut taken) {
        assert!(!error.to_string().is_empty());
    }
}
