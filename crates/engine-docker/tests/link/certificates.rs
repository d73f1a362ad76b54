//! Certificates of an engine, of whoever may use it, and of others, made for one test.

use std::path::{Path, PathBuf};
use std::process::Command;

const CONFIG: &str = "\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
subjectAltName = IP:127.0.0.1
extendedKeyUsage = serverAuth
[client]
extendedKeyUsage = clientAuth
";

/// Each directory has the files that Docker's tools look for.
const MAKE: &str = r#"
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config config"
authority() {
    openssl req -x509 $key -days 2 -extensions authority -subj "/CN=$1" -keyout "$1.key" -out "$1.pem"
}
signed() { # directory, authority, kind, whose authority it trusts
    mkdir "$1"
    openssl req -new $key -subj "/CN=$1" -keyout "$1/key.pem" -out "$1/request"
    openssl x509 -req -in "$1/request" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 \
        -extfile config -extensions "$3" -out "$1/cert.pem"
    cp "$4.pem" "$1/ca.pem"
}
authority ours
authority theirs
signed server ours server ours
signed client ours client ours
signed stranger theirs client ours
signed misled ours client theirs
"#;

pub(crate) struct Certificates(tempfile::TempDir);

impl Certificates {
    pub(crate) fn make() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config"), CONFIG).unwrap();
        let made = Command::new("sh").args(["-euc", MAKE]).current_dir(&directory).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self(directory)
    }

    /// `server`; `client`, whom it knows; `stranger`, whose authority it does not know; `misled`,
    /// who trusts another authority than the server's.
    pub(crate) fn of(&self, whom: &str) -> PathBuf {
        self.0.path().join(whom)
    }

    /// For `dockerd`.
    pub(crate) fn options(&self) -> Vec<String> {
        let server = self.of("server");
        let file = |option: &str, name: &str| option_of(option, &server.join(name));
        let mut options = vec!["--tlsverify".to_owned()];
        options.push(file("--tlscacert", "ca.pem"));
        options.push(file("--tlscert", "cert.pem"));
        options.push(file("--tlskey", "key.pem"));
        options
    }
}

fn option_of(option: &str, file: &Path) -> String {
    format!("{option}={}", file.display())
}
