//! Builds the runner as a static binary with a cargo of its own.
//!
//! A separate target directory keeps the inner cargo from waiting for the outer one's lock, and
//! an explicit `--target` keeps `crt-static` away from proc-macros and build scripts.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets the directory"));
    let crates = own.parent().expect("crates/ holds this crate");
    let workspace = crates.parent().expect("the workspace holds crates/");
    for source in ["runner", "rooted-fs", "channel", "protocol", "tar-stream", "terminal"] {
        println!("cargo:rerun-if-changed={}", crates.join(source).display());
    }
    println!("cargo:rerun-if-changed={}", workspace.join("Cargo.lock").display());

    let target = env::var("TARGET").expect("cargo sets TARGET");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target_dir = out.join("runner-target");
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");

    let status = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--package", "sandbank-runner", "--bin", "runner"])
        .args(["--profile", "runner", "--target", &target, "--target-dir"])
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\x1f-Crelocation-model=static")
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .expect("cargo starts");
    assert!(status.success(), "building the runner failed");

    let binary = target_dir.join(&target).join("runner").join("runner");
    println!("cargo:rustc-env=SANDBANK_RUNNER_PATH={}", binary.display());
}
