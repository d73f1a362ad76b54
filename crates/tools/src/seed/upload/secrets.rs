//! What is never uploaded, by name: other people's directories are full of keys.

/// Built, downloaded or private; left out wherever they are.
const DIRECTORIES: [&str; 5] = [".git", "node_modules", ".next", "data", "test-results"];

/// Where programs keep credentials; left out wherever they are.
const SECRET_DIRECTORIES: [&str; 11] = [
    ".ssh",
    ".aws",
    ".azure",
    ".docker",
    ".kube",
    ".gnupg",
    ".gcloud",
    ".oci",
    ".password-store",
    ".terraform.d",
    ".vault",
];

/// From the top, or behind a slash.
const SECRET_PATHS: [&str; 5] = [
    ".config/gcloud",
    ".config/gh",
    ".config/doctl",
    ".cargo/credentials",
    ".cargo/credentials.toml",
];

const SECRET_FILES: [&str; 32] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    ".npmrc",
    ".yarnrc",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".boto",
    ".s3cfg",
    ".vault-token",
    ".terraformrc",
    "kubeconfig",
    ".authinfo",
    ".curlrc",
    ".wgetrc",
    ".rclone.conf",
    "rclone.conf",
    "credentials.json",
    "service-account.json",
    "service_account.json",
    "client_secret.json",
    "master.key",
    "wallet.dat",
];

const SECRET_ENDINGS: [&str; 13] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".p8",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".gpg",
    ".ovpn",
    ".tfstate",
    ".tfstate.backup",
];

pub(super) fn is_left_out(directory: &[u8]) -> bool {
    DIRECTORIES.iter().any(|name| name.as_bytes() == directory)
}

/// `path` is relative, its last name is `name`. Whatever the case, for some file systems do not tell.
pub(super) fn is_secret_directory(path: &[u8], name: &[u8]) -> bool {
    let (path, name) = (path.to_ascii_lowercase(), name.to_ascii_lowercase());
    path == b"secrets" || has(&SECRET_DIRECTORIES, &name) || is_secret_path(&path)
}

pub(super) fn is_secret_file(path: &[u8], name: &[u8]) -> bool {
    let (path, name) = (path.to_ascii_lowercase(), name.to_ascii_lowercase());
    let environment = name.starts_with(b".env") && name != b".env.example";
    let ending = SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()));
    let above = path.starts_with(b"secrets/");
    environment || ending || above || has(&SECRET_FILES, &name) || is_secret_path(&path)
}

fn has(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|known| known.as_bytes() == name)
}

fn is_secret_path(path: &[u8]) -> bool {
    SECRET_PATHS.iter().any(|secret| {
        let before = path.strip_suffix(secret.as_bytes());
        before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
    })
}
