//! A directory is uploaded.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sandbank_tools::seed::SeedError;
use sandbank_tools::seed::upload::{Include, Skipped, UploadReport, UploadSeed};

use crate::directory::Directory;
use crate::repository::git;

fn seed(root: &Path, include: &str) -> UploadSeed {
    UploadSeed { root: root.into(), include: Include::new([include]).unwrap() }
}

async fn fill(root: &Path, workspace: &Path) -> Result<UploadReport, SeedError> {
    seed(root, "**/*").upload_into(&Directory::new(workspace), &|_| {}).await
}

fn write(root: &Path, path: impl AsRef<Path>, content: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Every file below, with its path.
fn files(root: &Path) -> Vec<String> {
    let output = Command::new("find")
        .args([".", "-type", "f", "-printf", "%P\\n"])
        .current_dir(root)
        .output();
    let mut files: Vec<_> =
        String::from_utf8_lossy(&output.unwrap().stdout).lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_goes_without_its_secrets_links_and_pipes_and_they_are_counted() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, workspace) = (from.path(), to.path());
    for plain in
        ["a", "src/main.rs", ".env.example", "a..b/'quoted' $x", "Grüße/日本.md", "deep/secrets/x"]
    {
        write(root, plain, plain);
    }
    let long = format!("{}/file", ["name-of-forty-characters-xxxxxxxxxxxxxxx"; 6].join("/"));
    write(root, &long, "long");
    write(root, "empty", "");
    write(root, "run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(root.join("run.sh"), PermissionsExt::from_mode(0o700)).unwrap();
    for secret in [
        ".env",
        ".env.local",
        "a.d/.env",
        "x.pem",
        "y.KEY",
        "secrets/a/b",
        "id_rsa",
        ".npmrc",
        ".ssh/config",
    ] {
        write(root, secret, "SECRET");
    }
    for left_out in
        [".next/x", "node_modules/a/b", "src/node_modules/c", "data/d", "test-results/e"]
    {
        write(root, left_out, "SECRET");
    }
    symlink("/etc/passwd", root.join("link")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    symlink(".env", root.join("harmless")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let odd = OsStr::from_bytes(b"not \xff\xfe text");
    std::fs::write(root.join(odd), "odd").unwrap();

    let lines = Mutex::new(Vec::new());
    let told = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let report = seed(root, "**/*").upload_into(&Directory::new(workspace), &told).await.unwrap();
    drop(socket);
    let skipped =
        Skipped { directories: 5, secrets: 9, links: 3, special: 2, ..Skipped::default() };
    assert_eq!((report.files, &report.skipped), (10, &skipped));
    let expected: u64 = [
        "a",
        "src/main.rs",
        ".env.example",
        "a..b/'quoted' $x",
        "Grüße/日本.md",
        "deep/secrets/x",
        "long",
        "#!/bin/sh\n",
        "odd",
    ]
    .iter()
    .map(|content| content.len() as u64)
    .sum();
    assert_eq!(report.bytes, expected);
    assert_eq!(files(workspace).len(), 10, "{:?}", files(workspace));
    let found = Command::new("grep").args(["-r", "-l", "SECRET"]).arg(workspace).output().unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
    assert_eq!(std::fs::read(workspace.join(odd)).unwrap(), b"odd");
    assert_eq!(std::fs::read_to_string(workspace.join(long)).unwrap(), "long");
    let mode =
        |path: &str| std::fs::metadata(workspace.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("run.sh"), mode("a")), (0o755, 0o644));
    assert!(lines.lock().unwrap()[0].contains("10 files"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_repository_only_what_git_tracks_goes_and_its_settings_run_nothing() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, workspace) = (from.path(), to.path());
    for file in ["tracked", "sub/also", ".gitignore", "id_rsa"] {
        write(root, file, "*.log\n");
    }
    write(root, OsStr::from_bytes(b"odd\xffname\nline"), "odd");
    git(root, &["init", "--quiet"]);
    git(root, &["add", "--all"]);
    let inner = root.join("module");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "--quiet"]);
    write(&inner, "inside", "");
    git(&inner, &["add", "--all"]);
    git(&inner, &["commit", "--quiet", "--message", "x"]);
    git(root, &["add", "module"]);
    write(root, "untracked", "");
    write(root, "sub/untracked", "");
    // Somebody else's repository, which would like to run something here.
    let mark = root.join("mark");
    let traps = format!(
        "[core]\n fsmonitor = \"touch {0}\"\n hooksPath = {1}\n pager = touch {0}\n[alias]\n ls-files = !touch {0}\n",
        mark.display(),
        root.display()
    );
    let config = root.join(".git/config");
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &traps).unwrap();
    if is_root() {
        assert!(
            Command::new("chown").args(["-R", "12345:12345"]).arg(root).status().unwrap().success()
        );
    }
    let report = fill(root, workspace).await.unwrap();
    let skipped = Skipped { directories: 2, secrets: 1, untracked: 3, ..Skipped::default() };
    assert_eq!((report.files, report.skipped), (4, skipped));
    assert!(!mark.exists());
    assert!(workspace.join("sub/also").exists() && !workspace.join("untracked").exists());
    assert!(workspace.join(OsStr::from_bytes(b"odd\xffname\nline")).exists());

    // One that git cannot read is not taken for a plain directory.
    std::fs::write(root.join(".git/HEAD"), "nonsense").unwrap();
    let error = fill(root, tempfile::tempdir().unwrap().path()).await.unwrap_err();
    assert!(matches!(error, SeedError::Tracked(_)), "{error}");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_two_thousand_and_first_file_is_one_too_many_and_patterns_help() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, workspace) = (from.path(), to.path());
    for number in 0..3_000 {
        let ending = if number < 2_000 { "rs" } else { "txt" };
        write(root, format!("d{}/f{number}.{ending}", number % 20), "x");
    }
    let error = fill(root, workspace).await.unwrap_err().to_string();
    assert!(error.starts_with("Too many files to upload from project_root (>2000). "), "{error}");
    assert!(error.contains("upload_include"), "{error}");
    assert!(files(workspace).is_empty(), "something was uploaded all the same");
    let lines = Mutex::new(Vec::new());
    let told = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let report =
        seed(root, "**/*.RS").upload_into(&Directory::new(workspace), &told).await.unwrap();
    assert_eq!((report.files, report.skipped.not_included), (2_000, 1_000));
    assert_eq!(files(workspace).len(), 2_000);
    assert!(
        lines.lock().unwrap().iter().any(|line| line == "uploaded 1900 of 2000 files"),
        "{lines:?}"
    );
    write(root, "one-more.rs", "x");
    let error =
        seed(root, "**/*.rs").upload_into(&Directory::new(workspace), &|_| {}).await.unwrap_err();
    assert_eq!(error, SeedError::TooManyFiles);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_found_out_before_anything_is_sent() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, workspace) = (from.path(), to.path());
    write(root, "a", "x");
    // A hole takes no room.
    std::fs::File::create(root.join("large")).unwrap().set_len((256 << 20) + 1).unwrap();
    let error = fill(root, workspace).await.unwrap_err();
    assert!(matches!(&error, SeedError::LargeFile { path } if path.contains("large")), "{error}");
    std::fs::remove_file(root.join("large")).unwrap();
    for number in 0..5 {
        std::fs::File::create(root.join(format!("l{number}"))).unwrap().set_len(256 << 20).unwrap();
    }
    assert_eq!(fill(root, workspace).await.unwrap_err(), SeedError::TooLarge);
    assert!(files(workspace).is_empty());
    let missing = fill(&root.join("nothing"), workspace).await.unwrap_err();
    assert!(matches!(missing, SeedError::Root { .. }), "{missing}");
}

/// Its files are cut, replaced by links and moved about all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_changes_meanwhile_never_makes_a_broken_archive_and_never_leaks() {
    let (from, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = from.path().to_owned();
    write(outside.path(), "secret", "SECRET");
    let content = "0123456789abcdef".repeat(100_000);
    for number in 0..20 {
        write(&root, format!("d/f{number}"), &content);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (away, stopped) = (outside.path().to_owned(), stop.clone());
    let changing = std::thread::spawn(move || {
        let mut number = 0_usize;
        while !stopped.load(Ordering::Relaxed) {
            number += 1;
            let path = root.join(format!("d/f{}", number % 20));
            let _ = match number % 5 {
                0 => std::fs::File::options()
                    .write(true)
                    .open(&path)
                    .and_then(|file| file.set_len(1_048_577)),
                1 => std::fs::remove_file(&path).and_then(|()| symlink(away.join("secret"), &path)),
                2 => std::fs::rename(root.join("d"), root.join("e"))
                    .and_then(|()| symlink(&away, root.join("d"))),
                3 => std::fs::remove_file(root.join("d"))
                    .and_then(|()| std::fs::rename(root.join("e"), root.join("d"))),
                _ => std::fs::remove_file(&path)
                    .and_then(|()| std::fs::write(&path, "0123456789abcdef".repeat(100_000))),
            };
        }
    });
    let mut whole = 0;
    for _ in 0..30 {
        let to = tempfile::tempdir().unwrap();
        match fill(from.path(), to.path()).await {
            Ok(report) => {
                whole += 1;
                assert_eq!(files(to.path()).len() as u64, report.files);
            }
            Err(SeedError::Changed { .. } | SeedError::Read { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        let found =
            Command::new("grep").args(["-r", "-l", "SECRET"]).arg(to.path()).output().unwrap();
        assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
    }
    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
    assert!(whole > 0, "not one upload came to its end");
}
