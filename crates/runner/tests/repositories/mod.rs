//! Real repositories in a workspace, made with the git of this machine.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

/// Without anybody's settings, as somebody.
pub(crate) fn command(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"])
        .args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]);
    git
}

pub(crate) fn try_git<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Output {
    command(directory).args(arguments).output().unwrap()
}

/// What it said.
pub(crate) fn git<A: AsRef<OsStr> + std::fmt::Debug>(directory: &Path, arguments: &[A]) -> String {
    let output = try_git(directory, arguments);
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(crate) fn write(directory: &Path, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// A repository with one commit of `a.txt`, `b.txt` and `d/c.txt`.
pub(crate) fn repository(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    git(directory, &["init", "--quiet"]);
    for name in ["a.txt", "b.txt", "d/c.txt"] {
        write(directory, name, format!("{name}\none\ntwo\nthree\nfour\n"));
    }
    commit(directory, "first");
}

pub(crate) fn commit(directory: &Path, message: &str) -> String {
    git(directory, &["add", "--all"]);
    git(directory, &["commit", "--quiet", "--allow-empty", "-m", message]);
    git(directory, &["rev-parse", "HEAD"])
}
