//! A repository, and a server of it on loopback.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sandbank_test_support::GIT_SERVER;

pub(crate) fn git(repository: &Path, words: &[&str]) -> String {
    let identity = ["-c", "user.name=Seed", "-c", "user.email=seed@example.com"];
    let output =
        Command::new("git").arg("-C").arg(repository).args(identity).args(words).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Three commits; the middle one has a tag. Gives its hash.
pub(crate) fn repository(at: &Path) -> String {
    std::fs::create_dir_all(at.join("src")).unwrap();
    git(at, &["init", "--quiet", "--initial-branch=main"]);
    for number in 1..=3 {
        std::fs::write(at.join("src/count"), format!("{number}\n")).unwrap();
        std::fs::write(at.join(".hidden"), "dot\n").unwrap();
        git(at, &["add", "."]);
        git(at, &["commit", "--quiet", "--message", &format!("Count to {number}")]);
        if number == 2 {
            git(at, &["tag", "two"]);
            git(at, &["branch", "side"]);
        }
    }
    git(at, &["rev-parse", "two"])
}

/// Of the repositories in a directory; with a user and a password only if there are some.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(directory: &Path, credentials: &str) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", GIT_SERVER])
            .arg(directory)
            .args(["127.0.0.1", "0", credentials])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
