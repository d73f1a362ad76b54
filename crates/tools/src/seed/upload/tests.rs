//! Names that never leave, patterns, and files that grow after they were counted.

use sandbank_rooted_fs::{RelPath, Root};
use tokio::sync::mpsc;

use super::archive;
use super::include::Include;
use super::plan::Plan;
use super::secrets::{is_left_out, is_secret_directory, is_secret_file};
use crate::seed::SeedError;

fn name(path: &str) -> &[u8] {
    path.rsplit('/').next().unwrap().as_bytes()
}

#[test]
fn files_that_look_like_secrets_stay_and_others_go() {
    for secret in [
        ".env",
        ".env.local",
        "a/.env",
        ".ENV",
        ".envrc",
        "server.pem",
        "a/b/x.key",
        "X.KEY",
        "secrets/x",
        "secrets/a/b",
        "id_rsa",
        "a/id_ed25519",
        ".npmrc",
        ".netrc",
        ".pypirc",
        "x.p12",
        "x.pfx",
        "x.jks",
        "x.kdbx",
        "x.ppk",
        ".git-credentials",
        ".pgpass",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        ".cargo/credentials.toml",
        "a/.cargo/credentials",
        "service-account.json",
        "kubeconfig",
        "config/master.key",
    ] {
        assert!(is_secret_file(secret.as_bytes(), name(secret)), "{secret}");
    }
    for plain in [
        ".env.example",
        "a/.env.example",
        "environment",
        "main.rs",
        "key.rs",
        "pem",
        "id_rsa.pub",
        "a/secrets/x.rs",
        "secrets.rs",
        "keys/readme",
        "package.json",
        ".gitignore",
        "credentials.rs",
        ".cargo/config.toml",
    ] {
        assert!(!is_secret_file(plain.as_bytes(), name(plain)), "{plain}");
    }
    for secret in
        [".ssh", "a/.aws", ".docker", ".kube", ".gnupg", "secrets", "Secrets", ".config/gcloud"]
    {
        assert!(is_secret_directory(secret.as_bytes(), name(secret)), "{secret}");
    }
    for plain in ["src", "a/secrets", "ssh", "aws", ".github", ".config"] {
        assert!(!is_secret_directory(plain.as_bytes(), name(plain)), "{plain}");
    }
    for left_out in [".git", "node_modules", ".next", "data", "test-results"] {
        assert!(is_left_out(left_out.as_bytes()));
    }
    assert!(!is_left_out(b"database"));
}

#[test]
fn a_pattern_means_what_it_says() {
    for (pattern, path, expected) in [
        ("**/*", "a", true),
        ("**/*", "a/b/.c", true),
        ("**/*.ts", "a.ts", true),
        ("**/*.ts", "a/b.TS", true),
        ("**/*.ts", "a.tsx", false),
        ("**/*.{ts,json}", "a/b.json", true),
        ("**/*.{ts,json}", "a/b.js", false),
        ("src/**", "src/a/b", true),
        ("src/**", "a/src/b", false),
        ("./src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/a/b.rs", false),
        ("*.md", "a/b.md", false),
    ] {
        assert_eq!(
            Include::new([pattern]).unwrap().has(path.as_bytes()),
            expected,
            "{pattern} {path}"
        );
    }
    let several = Include::new(["*.md", "src/**"]).unwrap();
    assert!(several.has(b"a.md") && several.has(b"src/x") && !several.has(b"x"));
    assert!(Include::new(["["]).is_err() && Include::new(["a{b"]).is_err());
}

#[test]
fn files_that_grow_after_they_were_counted_are_not_more_than_all_may_have() {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..5)
        .map(|number| std::fs::File::create(directory.path().join(number.to_string())).unwrap())
        .collect();
    let root = Root::open(directory.path(), [""; 0]).unwrap();
    let top = root.open_directory(&RelPath::root()).unwrap();
    let plan = Plan::make(top, None, &Include::new(["**/*"]).unwrap()).unwrap();
    assert_eq!((plan.files.len(), plan.bytes), (5, 0));
    for file in &files {
        // A hole takes no room.
        file.set_len(256 << 20).unwrap();
    }
    let (pieces, mut archive) = mpsc::channel(1);
    let reading = std::thread::spawn(move || {
        let mut last = None;
        while let Some(piece) = archive.blocking_recv() {
            last = Some(piece);
        }
        last
    });
    let (tell, _told) = mpsc::unbounded_channel();
    let written = archive::write(&root, &plan, pieces, &tell);
    assert!(matches!(written, Err(SeedError::TooLarge)));
    let last = reading.join().unwrap().expect("something was sent");
    assert!(last.is_err(), "nobody takes it for whole");
}
