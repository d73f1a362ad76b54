//! What a chat's sandbox is seeded with, in sandboxd's dialect: a repository that is cloned inside, or
//! a directory that is uploaded. The same as the tools do it, and what a person says about their calls.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approvals;
mod outside;
mod tools;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use outside::Outside;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const WORKSPACE: &str = "/vercel/sandbox/workspace";

/// Files of one request, as the client has it.
const BATCH: usize = 25;

/// What the client runs once in a new sandbox, with the URL and the revision.
const SEED_FROM_GIT: &str = r#"set -e
[ ! -e .remcochat/seeded_git ] || exit 0
if [ -z "$(ls -A | grep -v '^\.remcochat$')" ]; then
  git clone "$URL" .
  [ -z "$REVISION" ] || git checkout --quiet "$REVISION"
fi
mkdir -p .remcochat
touch .remcochat/seeded_git"#;

async fn create(api: &Api, key: &str, network: &str) -> anyhow::Result<Value> {
    let body = json!({
        "sessionKey": key, "runtime": "node24", "idleTtlMs": 900_000,
        "resources": { "vcpus": 2, "memoryMb": 2048 },
        "network": { "mode": network }, "ports": [3000]
    });
    api.call("POST", "/v1/sandboxes", Some(body)).await
}

fn git(repository: &Path, words: &[&str]) -> anyhow::Result<String> {
    let identity = ["-c", "user.name=Seed", "-c", "user.email=seed@example.com"];
    let output =
        Command::new("git").arg("-C").arg(repository).args(identity).args(words).output()?;
    ensure!(output.status.success(), "git {words:?}: {output:?}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Three commits on a branch; the middle one has a tag. Gives its hash.
fn repository(at: &Path) -> anyhow::Result<String> {
    std::fs::create_dir_all(at.join("src"))?;
    git(at, &["init", "--quiet", "--initial-branch=main"])?;
    for number in 1..=3 {
        std::fs::write(at.join("src/count"), format!("{number}\n"))?;
        git(at, &["add", "."])?;
        git(at, &["commit", "--quiet", "--message", &format!("Count to {number}")])?;
        if number == 2 {
            git(at, &["tag", "two"])?;
        }
    }
    git(at, &["rev-parse", "two"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_cloned_inside_at_its_revision_and_only_once() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let root = tempfile::tempdir()?;
    let two = repository(&root.path().join("project"))?;
    let daemon = TestDaemon::start(SANDBANK).await?;
    let outside = Outside::start(&daemon, root.path())?;
    let url = format!("http://{}/project/.git", outside.address());
    let api = daemon.api()?;
    let made = create(&api, "chat:git", "default").await?;
    let id = made["sandboxId"].as_str().unwrap();
    let seed = format!("URL={url} REVISION={two}\n{SEED_FROM_GIT}");
    let (code, _, errors) = api.run(id, &seed).await?;
    assert_eq!(code, 0, "{errors}");
    let (_, seen, _) = api.run(id, "git rev-parse HEAD; cat src/count; git status --short").await?;
    assert_eq!(seen, format!("{two}\n2\n?? .remcochat/\n"));

    // What was changed since stays: a client that comes back does not seed again.
    api.run(id, "echo mine > src/count").await?;
    let again = create(&api, "chat:git", "default").await?;
    assert_eq!((&again["sandboxId"], &again["created"]), (&json!(id), &json!(false)));
    assert_eq!(api.run(id, &seed).await?.0, 0);
    assert_eq!(api.run(id, "cat src/count").await?.1, "mine\n");

    let shallow = format!("git clone --quiet --depth 1 --branch two {url} shallow && cd shallow");
    let (code, seen, errors) =
        api.run(id, &format!("{shallow} && git rev-list --count HEAD && cat src/count")).await?;
    assert_eq!((code, seen.as_str()), (0, "1\n2\n"), "{errors}");

    // The same without a network, so that it is the network by which it came.
    let offline = create(&api, "chat:offline", "none").await?;
    let (code, ..) = api.run(offline["sandboxId"].as_str().unwrap(), &seed).await?;
    assert_ne!(code, 0, "it was cloned without a network");
    daemon.finish().await
}

/// Of every kind of name and content that a project has.
fn project() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for number in 0..70 {
        let path = format!("src/deep/er/{}/file {number}.txt", number % 7);
        files.insert(path, format!("file {number}\n").repeat(number * 10).into_bytes());
    }
    files.insert("empty".to_owned(), Vec::new());
    files.insert(".env.example".to_owned(), b"KEY=\n".to_vec());
    files.insert("Grüße/日本.md".to_owned(), "# Grüße\n".into());
    files.insert("a..b/'quoted' \"name\" $x".to_owned(), b"odd".to_vec());
    files.insert("bytes.bin".to_owned(), (0..=255).cycle().take(2 << 20).collect());
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_uploaded_file_by_file_and_is_the_same_inside() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let made = create(&api, "chat:upload", "none").await?;
    let id = made["sandboxId"].as_str().unwrap();
    let files = project();
    let entry = |(path, content): (&String, &Vec<u8>)| json!({ "path": format!("{WORKSPACE}/{path}"), "contentBase64": BASE64.encode(content) });
    let entries: Vec<Value> = files.iter().map(entry).collect();
    for batch in entries.chunks(BATCH) {
        let body = json!({ "files": batch });
        let answer =
            api.call("POST", &format!("/v1/sandboxes/{id}/files:write"), Some(body)).await?;
        assert_eq!(answer["ok"], true);
    }
    let list =
        "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum --zero | tr '\\0' '\\n'";
    let (code, seen, errors) = api.run(id, list).await?;
    assert_eq!((code, errors.as_str()), (0, ""));
    let expected: String = files.iter().map(|(path, content)| digest(path, content)).collect();
    assert_eq!(seen, expected);
    // They are the workload's own, to be changed and removed.
    let change = "echo more >> empty && cat empty && rm -r src && ls";
    assert_eq!(api.run(id, change).await?.1, "more\nGrüße\na..b\nbytes.bin\nempty\n");
    api.run(id, ": > empty").await?;
    for path in ["empty", "bytes.bin", ".env.example"] {
        let read = api.read(id, &format!("{WORKSPACE}/{path}")).await?;
        assert_eq!(read.as_ref(), files.get(path), "{path}");
    }
    daemon.finish().await
}

fn digest(path: &str, content: &[u8]) -> String {
    format!("{}  ./{path}\n", sha256(content))
}

fn sha256(content: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
