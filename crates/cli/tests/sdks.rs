//! The SDKs and the examples, packed and installed as a user would have them, against the real
//! program. What each needs is installed below `.build/` by its own script.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use sandbank_test_support::{EngineUnderTest, SUITE_IMAGE, is_over_docker, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Of sandboxes and of sessions, where it is not the usual one.
const IMAGES: [&str; 2] = ["SANDBANK_TEST_IMAGE", "SANDBANK_TEST_SESSION_IMAGE"];

/// What the script printed; none without root.
fn passes(script: &str) -> Option<String> {
    passes_on("20", script)
}

/// `node` is the version that the script needs at least.
fn passes_on(node: &str, script: &str) -> Option<String> {
    if skip_unless_root() {
        return None;
    }
    let engine = EngineUnderTest::get().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let node = Command::new(root.join("scripts/node.sh")).arg(node).output().unwrap();
    let said = String::from_utf8_lossy(&node.stderr).into_owned();
    assert!(node.status.success(), "no node to test with: {said}");
    let programs = String::from_utf8(node.stdout).unwrap();
    let path = format!("{}:{}", programs.trim(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("timeout")
        .args(["--kill-after=10", "900"])
        .arg(root.join(script))
        .current_dir(root)
        .env("SANDBANK_BIN", SANDBANK)
        .env("PATH", path)
        // Servers that the scripts start are over the same engine.
        .envs(engine.settings())
        .envs(IMAGES.into_iter().filter(|_| is_over_docker()).map(|name| (name, SUITE_IMAGE)))
        .env_remove("SANDBANK_URL")
        .env_remove("SANDBANK_TOKEN")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{script}: {}\n{}", output.status, text(&output.stderr));
    Some(said)
}

#[test]
fn the_python_sdk_passes_its_tests_as_an_installed_wheel() {
    // With a program to start there is nothing that it could not test.
    let said = passes("sdk/python/test.sh").unwrap_or_default();
    assert!(!said.contains(" skipped"), "{said}");
}

#[test]
fn the_typescript_sdk_passes_its_tests_as_an_installed_package() {
    passes("sdk/typescript/test.sh");
}

#[test]
fn the_tools_for_the_ai_sdk_work_with_every_version_of_it_that_they_are_for() {
    passes_on("24", "sdk/ai-sdk/test.sh");
}

#[test]
fn every_example_does_what_it_says() {
    passes("examples/test.sh");
}
