//! A repository is cloned inside.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use sandbank_tools::seed::SeedError;
use sandbank_tools::seed::git::{Credentials, GitSeed, RepositoryUrl, Revision};

use crate::directory::Directory;
use crate::repository::{Server, git, repository};

const TIMEOUT: Duration = Duration::from_secs(60);

fn seed(url: &str) -> GitSeed {
    let (url, credentials) = RepositoryUrl::parse(url).unwrap();
    GitSeed { url, revision: None, depth: None, submodules: false, credentials, timeout: TIMEOUT }
}

fn at(url: &str, revision: &str) -> GitSeed {
    GitSeed { revision: Some(Revision::parse(revision).unwrap()), ..seed(url) }
}

async fn fill(seed: &GitSeed, workspace: &Path) -> Result<(), SeedError> {
    seed.clone_into(&Directory::new(workspace), &|_| {}).await
}

struct Bench {
    _root: tempfile::TempDir,
    server: Server,
    two: String,
    workspace: tempfile::TempDir,
}

fn bench(credentials: &str) -> Bench {
    let root = tempfile::tempdir().unwrap();
    let two = repository(&root.path().join("project"));
    let server = Server::start(root.path(), credentials);
    Bench { _root: root, server, two, workspace: tempfile::tempdir().unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_cloned_once_and_an_own_file_keeps_it_out() {
    let Bench { server, workspace, .. } = &bench("");
    let (path, seed) = (workspace.path(), seed(&server.url("project/.git")));
    let lines = Mutex::new(Vec::new());
    let told = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let sandbox = Directory::new(path);
    // What a prelude made before is no content.
    std::fs::create_dir_all(path.join(".remcochat/bin")).unwrap();
    seed.clone_into(&sandbox, &told).await.unwrap();
    assert_eq!(sandbox.names(), [".git", ".hidden", ".remcochat", "src"]);
    assert_eq!(
        (sandbox.read("src/count"), sandbox.read(".hidden")),
        ("3\n".into(), "dot\n".into())
    );
    assert!(
        path.join(".remcochat/seeded_git").exists() && !path.join(".remcochat/seed_draft").exists()
    );
    assert_eq!(git(path, &["status", "--short"]), "?? .remcochat/");
    assert_eq!(git(path, &["remote", "get-url", "origin"]), server.url("project/.git"));
    assert!(
        lines.lock().unwrap().iter().any(|line| line.contains("Receiving objects")),
        "{lines:?}"
    );

    std::fs::write(path.join("src/count"), "mine\n").unwrap();
    fill(&seed, path).await.unwrap();
    assert_eq!(sandbox.read("src/count"), "mine\n");

    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join(".mine"), "").unwrap();
    fill(&seed, other.path()).await.unwrap();
    assert_eq!(Directory::new(other.path()).names(), [".mine", ".remcochat"]);
    assert!(other.path().join(".remcochat/seeded_git").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_tags_and_hashes_are_checked_out_with_the_history_that_was_asked_for() {
    let bench = bench("");
    let url = bench.server.url("project/.git");
    let two = bench.two.as_str();
    for (revision, depth, expected) in [
        ("side", None, "2"),
        ("two", None, "2"),
        (two, None, "2"),
        (&two[..8], None, "2"),
        ("two", Some(1), "1"),
        ("side", Some(1), "1"),
        (two, Some(1), "1"),
        (&two[..8], Some(1), "2"),
    ] {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path();
        fill(&GitSeed { depth, ..at(&url, revision) }, path).await.unwrap();
        assert_eq!(Directory::new(path).read("src/count"), "2\n", "{revision} {depth:?}");
        assert_eq!(git(path, &["rev-list", "--count", "HEAD"]), expected, "{revision} {depth:?}");
        assert_eq!(git(path, &["rev-parse", "HEAD"]), two);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_clone_says_why_and_leaves_nothing_so_that_the_next_one_works() {
    let bench = bench("");
    let path = bench.workspace.path();
    let sandbox = Directory::new(path);
    let good = bench.server.url("project/.git");
    let unreachable = "http://user:hunter2@127.0.0.1:1/x".to_owned();
    for (seed, part) in [
        (seed(&bench.server.url("nothing/.git")), "not found"),
        (at(&good, "no-such-branch"), "no-such-branch"),
        (at(&good, "0123456789abcdef0123456789abcdef01234567"), "0123456789abcdef"),
        (seed(&unreachable), "127.0.0.1"),
    ] {
        let error = fill(&seed, path).await.unwrap_err().to_string();
        assert!(error.starts_with("Failed to seed sandbox from git (exit 1"), "{error}");
        assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
        assert_eq!(sandbox.names(), [".remcochat"]);
        assert_eq!(std::fs::read_dir(path.join(".remcochat")).unwrap().count(), 0);
    }
    fill(&seed(&good), path).await.unwrap();
    assert_eq!(sandbox.read("src/count"), "3\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_that_takes_too_long_is_killed_and_leaves_nothing() {
    let bench = bench("");
    let path = bench.workspace.path();
    let mute =
        GitSeed { timeout: Duration::from_millis(500), ..seed(&bench.server.url("mute/.git")) };
    let error = fill(&mute, path).await.unwrap_err().to_string();
    assert!(error.contains("(exit 124)") && error.contains("took longer"), "{error}");
    assert_eq!(Directory::new(path).names(), [".remcochat"]);
    assert!(!path.join(".remcochat/seed_draft").exists());
    fill(&seed(&bench.server.url("project/.git")), path).await.unwrap();
    assert_eq!(Directory::new(path).read("src/count"), "3\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_clone_left_is_no_content_and_an_interrupted_move_is_finished() {
    let bench = bench("");
    let (path, seed) = (bench.workspace.path(), seed(&bench.server.url("project/.git")));
    std::fs::create_dir_all(path.join(".remcochat/seed_draft/half")).unwrap();
    fill(&seed, path).await.unwrap();
    assert_eq!(Directory::new(path).names(), [".git", ".hidden", ".remcochat", "src"]);

    // As if it had been killed after the first rename.
    let other = tempfile::tempdir().unwrap();
    let draft = other.path().join(".remcochat/seed_draft");
    std::fs::create_dir_all(&draft).unwrap();
    std::fs::write(other.path().join(".remcochat/seed_moving"), "").unwrap();
    std::fs::create_dir(other.path().join("src")).unwrap();
    std::fs::write(draft.join("rest"), "x").unwrap();
    std::fs::write(draft.join("..dots"), "x").unwrap();
    fill(&seed, other.path()).await.unwrap();
    assert_eq!(Directory::new(other.path()).names(), ["..dots", ".remcochat", "rest", "src"]);
    let kept: Vec<_> = std::fs::read_dir(other.path().join(".remcochat")).unwrap().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

fn everything_below(path: &Path) -> Vec<u8> {
    let output = std::process::Command::new("grep")
        .args(["--recursive", "--text", "--no-filename", ""])
        .arg(path)
        .output()
        .unwrap();
    output.stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_opens_the_repository_and_is_kept_nowhere() {
    let bench = bench("alice:hunter2/secret");
    let path = bench.workspace.path();
    let url = bench.server.url("project/.git");
    let error = fill(&seed(&url), path).await.unwrap_err().to_string();
    assert!(
        error.contains("could not read Username") || error.contains("Authentication"),
        "{error}"
    );
    let wrong = Credentials::new("alice", "wr0ng-secret").unwrap();
    let error = fill(&GitSeed { credentials: Some(wrong), ..seed(&url) }, path).await.unwrap_err();
    assert!(!error.to_string().contains("wr0ng"), "{error}");

    let given = Credentials::new("alice", "hunter2/secret").unwrap();
    fill(&GitSeed { credentials: Some(given), ..seed(&url) }, path).await.unwrap();
    let in_url = url.replace("http://", "http://alice:hunter2%2Fsecret@");
    let other = tempfile::tempdir().unwrap();
    fill(&seed(&in_url), other.path()).await.unwrap();
    for path in [path, other.path()] {
        assert_eq!(Directory::new(path).read("src/count"), "3\n");
        let kept = everything_below(path);
        let kept = String::from_utf8_lossy(&kept);
        assert!(kept.contains("127.0.0.1") && !kept.contains("hunter2"), "it is kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_adds_no_programs_of_its_own_and_its_submodules_stay_out_unless_wanted() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("project");
    repository(&project);
    let inner = root.path().join("inner");
    repository(&inner);
    let server = Server::start(root.path(), "");
    let url = server.url("inner/.git");
    std::fs::create_dir_all(project.join(".remcochat/bin")).unwrap();
    std::fs::write(project.join(".remcochat/bin/ls"), "#!/bin/sh\n").unwrap();
    git(&project, &["submodule", "--quiet", "add", &url, "sub"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", "Traps"]);
    let workspace = tempfile::tempdir().unwrap();
    let path = workspace.path();
    fill(&seed(&server.url("project/.git")), path).await.unwrap();
    assert_eq!(std::fs::read_dir(path.join("sub")).unwrap().count(), 0);
    // What would come first in every search for a program is not the repository's to choose.
    assert!(!path.join(".remcochat/bin").exists());

    let other = tempfile::tempdir().unwrap();
    let with = GitSeed { submodules: true, ..seed(&server.url("project/.git")) };
    fill(&with, other.path()).await.unwrap();
    assert_eq!(Directory::new(other.path()).read("sub/src/count"), "3\n");
    assert_eq!(git(&other.path().join("sub"), &["status", "--short"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_git_is_named() {
    let bench = bench("");
    let path = bench.workspace.path();
    let empty = tempfile::tempdir().unwrap();
    for program in ["mkdir", "rm", "rmdir", "mv"] {
        std::os::unix::fs::symlink(format!("/bin/{program}"), empty.path().join(program)).unwrap();
    }
    let sandbox = Directory { workspace: path.into(), path: empty.path().display().to_string() };
    let error =
        seed(&bench.server.url("project/.git")).clone_into(&sandbox, &|_| {}).await.unwrap_err();
    assert!(
        error.to_string().contains("(exit 127)") && error.to_string().contains("no git"),
        "{error}"
    );
}
