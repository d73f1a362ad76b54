//! SPECIFICATION.md names only what is there: a promise whose test was renamed or deleted is a
//! promise that nothing enforces.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// A shorter name in backticks may be a setting or a code.
const WORDS_OF_A_TEST_NAME: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What stands in backticks in the tables.
fn quoted(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect()
}

fn sources(dir: &Path, into: &mut String) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

fn is_test_name(word: &str) -> bool {
    word.split('_').count() >= WORDS_OF_A_TEST_NAME
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn every_test_that_the_specification_names_is_there() {
    let text = fs::read_to_string(root().join("SPECIFICATION.md")).unwrap();
    let mut code = String::new();
    sources(&root().join("crates"), &mut code);
    let named: Vec<_> = quoted(&text).into_iter().filter(|word| is_test_name(word)).collect();
    assert!(named.len() > 20, "only {} tests are named: is the table still read?", named.len());
    let gone: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(gone.is_empty(), "SPECIFICATION.md names tests that are not there: {gone:#?}");
}

#[test]
fn every_file_that_the_specification_names_is_there() {
    let text = fs::read_to_string(root().join("SPECIFICATION.md")).unwrap();
    let is_path = |word: &&str| word.contains("/src/") || word.contains("/tests/");
    let named: Vec<_> = quoted(&text).into_iter().filter(is_path).collect();
    assert!(named.len() > 20, "only {} files are named: is the table still read?", named.len());
    let is_there =
        |path: &str| root().join("crates").join(path).exists() || root().join(path).exists();
    let gone: Vec<_> = named.iter().filter(|path| !is_there(path)).collect();
    assert!(gone.is_empty(), "SPECIFICATION.md names files that are not there: {gone:#?}");
}
