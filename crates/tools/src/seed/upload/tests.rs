//! Names that never leave, and patterns.

use super::include::Include;
use super::secrets::{is_left_out, is_secret_directory, is_secret_file};

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
