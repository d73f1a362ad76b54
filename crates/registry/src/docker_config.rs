//! Credentials as `docker login` keeps them: in its `config.json`, or with a helper that it names.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::error::clipped;
use crate::limits::{DOCKER_CONFIG_BYTES, HELPER_TIMEOUT};
use crate::{Credentials, Reference};

/// What Docker calls its own registry here, for historical reasons.
const HUB_KEY: &str = "https://index.docker.io/v1/";

/// In place of a name: the secret is a token to get a token with.
const TOKEN_USER: &str = "<token>";

#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("{} cannot be read: {reason}", path.display())]
    Config { path: PathBuf, reason: String },
    #[error("the credential helper {helper} failed: {reason}")]
    Helper { helper: String, reason: String },
    #[error("{registry} has an identity token, which is not supported")]
    IdentityToken { registry: String },
}

/// Docker's configuration of one user. Nothing of it is printed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DockerConfig {
    #[serde(default)]
    auths: HashMap<String, Entry>,
    #[serde(default)]
    cred_helpers: HashMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

impl DockerConfig {
    /// Of whoever runs this: `$DOCKER_CONFIG` or `~/.docker`. Empty when there is none.
    pub fn of_this_user() -> Result<Self, CredentialsError> {
        let named = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".docker"));
        match named.or_else(home) {
            Some(dir) => Self::read(&dir.join("config.json")),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self, CredentialsError> {
        let wrong = |reason: String| CredentialsError::Config { path: path.to_owned(), reason };
        let file = match std::fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            other => other.map_err(|error| wrong(error.to_string()))?,
        };
        let mut content = Vec::new();
        file.take(DOCKER_CONFIG_BYTES)
            .read_to_end(&mut content)
            .map_err(|error| wrong(error.to_string()))?;
        // The parser's own words could quote a secret.
        serde_json::from_slice(&content).map_err(|error| {
            wrong(format!("it is no JSON as Docker writes it, line {}", error.line()))
        })
    }

    /// What to show the registry of an image; none when nothing is known about it.
    pub async fn credentials(
        &self,
        reference: &Reference,
    ) -> Result<Option<Credentials>, CredentialsError> {
        let registry = reference.registry();
        let keys = keys(registry);
        let helper = keys.iter().find_map(|key| self.cred_helpers.get(key));
        if let Some(helper) = helper.or(self.creds_store.as_ref()) {
            return ask_helper(helper, &keys[0], registry).await;
        }
        let Some(entry) = keys.iter().find_map(|key| self.auths.get(key)) else { return Ok(None) };
        if entry.identitytoken.as_ref().is_some_and(|token| !token.is_empty()) {
            return Err(CredentialsError::IdentityToken { registry: registry.to_owned() });
        }
        Ok(entry.credentials())
    }
}

/// The names that a registry may have in the file, the likeliest first.
fn keys(registry: &str) -> Vec<String> {
    if registry == "docker.io" {
        return [HUB_KEY, "docker.io", "index.docker.io"].map(str::to_owned).to_vec();
    }
    let forms =
        ["{}", "https://{}", "https://{}/", "https://{}/v1/", "https://{}/v2/", "http://{}"];
    forms.iter().map(|form| form.replace("{}", registry)).collect()
}

impl Entry {
    fn credentials(&self) -> Option<Credentials> {
        if let Some(auth) = self.auth.as_ref().filter(|auth| !auth.is_empty()) {
            let plain = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
            let (username, password) = plain.split_once(':')?;
            let password = password.trim_end_matches('\0').to_owned();
            return Some(Credentials { username: username.to_owned(), password });
        }
        let (username, password) = (self.username.clone()?, self.password.clone()?);
        Some(Credentials { username, password })
    }
}

async fn ask_helper(
    helper: &str,
    key: &str,
    registry: &str,
) -> Result<Option<Credentials>, CredentialsError> {
    let failed = |reason: String| CredentialsError::Helper { helper: clipped(helper), reason };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if helper.is_empty() || !helper.bytes().all(plain) {
        return Err(failed("its name has other characters than letters and digits".to_owned()));
    }
    let mut child = Command::new(format!("docker-credential-{helper}"))
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (mut input, output) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let asked = async {
        input.write_all(key.as_bytes()).await?;
        drop(input);
        let mut said = Vec::new();
        output.take(DOCKER_CONFIG_BYTES).read_to_end(&mut said).await?;
        Ok::<_, std::io::Error>((said, child.wait().await?))
    };
    let (said, status) = match tokio::time::timeout(HELPER_TIMEOUT, asked).await {
        Ok(asked) => asked.map_err(|error| failed(error.to_string()))?,
        Err(_) => return Err(failed(format!("no answer for {} s", HELPER_TIMEOUT.as_secs()))),
    };
    if !status.success() {
        let text = String::from_utf8_lossy(&said);
        // How every helper says that it has none.
        if text.contains("credentials not found") {
            return Ok(None);
        }
        return Err(failed(clipped(text.trim())));
    }
    let answer: Answer = serde_json::from_slice(&said)
        .map_err(|_| failed("its answer has no Username and Secret".to_owned()))?;
    if answer.username == TOKEN_USER {
        return Err(CredentialsError::IdentityToken { registry: registry.to_owned() });
    }
    Ok(Some(Credentials { username: answer.username, password: answer.secret }))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn of(config: &str, reference: &str) -> Option<(String, String)> {
        let config: DockerConfig = serde_json::from_str(config).unwrap();
        let found = config.credentials(&reference.parse().unwrap()).await.unwrap();
        found.map(|found| (found.username, found.password))
    }

    #[tokio::test]
    async fn a_registry_gets_its_own_credentials_and_no_others() {
        // me:se:cret and hub:h
        let config = r#"{"auths":{"localhost:5000":{"auth":"bWU6c2U6Y3JldA=="},
            "https://index.docker.io/v1/":{"auth":"aHViOmg="},"https://ghcr.io":{"username":"a","password":"b"}}}"#;
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(of(config, "localhost:5000/x").await, pair("me", "se:cret"));
        assert_eq!(of(config, "node:24").await, pair("hub", "h"));
        assert_eq!(of(config, "ghcr.io/a/b").await, pair("a", "b"));
        assert_eq!(of(config, "localhost:5001/x").await, None);
        assert_eq!(of("{}", "node").await, None);
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_an_error_and_not_nobody() {
        let token = r#"{"auths":{"a.b":{"auth":"","identitytoken":"secret"}}}"#;
        let path = r#"{"credsStore":"../../bin/sh"}"#;
        let absent = r#"{"credHelpers":{"a.b":"there-is-no-such-helper"}}"#;
        for config in [token, path, absent] {
            let config: DockerConfig = serde_json::from_str(config).unwrap();
            let found = config.credentials(&"a.b/c".parse().unwrap()).await;
            assert!(!found.unwrap_err().to_string().contains("secret"));
        }
    }

    #[test]
    fn a_broken_file_is_named_and_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        assert!(DockerConfig::read(&path).is_ok(), "none is no error");
        std::fs::write(&path, "{\"auths\": \"secret").unwrap();
        let error = DockerConfig::read(&path).err().unwrap().to_string();
        assert!(error.contains("config.json") && !error.contains("secret"), "{error}");
    }
}
