//! A real registry on a port of its own, filled over HTTP as any client would.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use sandbank_test_support::{free_port, wait_for};
use serde_json::Value;

use crate::layers::{Layer, configuration, digest, machine, manifest};

/// `me` and `open sesame`, as htpasswd writes them.
const ACCOUNT: &str = "me:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";
pub(crate) const USER: (&str, &str) = ("me", "open sesame");

pub(crate) struct Registry {
    child: Child,
    dir: tempfile::TempDir,
    pub(crate) port: u16,
    http: reqwest::Client,
    account: bool,
}

impl Registry {
    /// With `account`, only [`USER`] may do anything.
    pub(crate) async fn start_as(program: &Path, account: bool) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = free_port()?;
        let place = dir.path().display();
        let mut config = format!(
            "version: 0.1\nlog:\n  accesslog:\n    disabled: false\nstorage:\n  filesystem:\n    \
             rootdirectory: {place}/data\nhttp:\n  addr: 127.0.0.1:{port}\n  secret: x\n"
        );
        if account {
            std::fs::write(dir.path().join("htpasswd"), ACCOUNT)?;
            config += &format!("auth:\n  htpasswd:\n    realm: test\n    path: {place}/htpasswd\n");
        }
        std::fs::write(dir.path().join("config.yml"), config)?;
        let log = File::create(dir.path().join("log"))?;
        let child = Command::new(program)
            .arg("serve")
            .arg(dir.path().join("config.yml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let registry = Self { child, dir, port, http: reqwest::Client::new(), account };
        let url = registry.url("");
        wait_for("the registry to answer", Duration::from_secs(20), || async {
            reqwest::get(&url).await.is_ok()
        })
        .await
        .with_context(|| registry.log())?;
        Ok(registry)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/v2/{path}", self.port)
    }

    /// What to pull.
    pub(crate) fn reference(&self, name: &str) -> String {
        format!("127.0.0.1:{}/{name}", self.port)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// How often a blob was asked for.
    pub(crate) fn times_sent(&self, layer: &Layer) -> usize {
        let asked = format!("/blobs/{} HTTP", layer.digest());
        self.log().lines().filter(|line| line.contains("GET /v2/") && line.contains(&asked)).count()
    }

    /// Everything of it.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where the registry keeps a blob.
    pub(crate) fn blob_file(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap();
        let blobs = self.dir.path().join("data/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<reqwest::Response> {
        let request = if self.account { request.basic_auth(USER.0, Some(USER.1)) } else { request };
        let answer = request.send().await?;
        let status = answer.status();
        ensure!(status.is_success(), "{status}: {}", self.log());
        Ok(answer)
    }

    pub(crate) async fn push_blob(&self, repository: &str, content: &[u8]) -> anyhow::Result<()> {
        let start = self.http.post(self.url(&format!("{repository}/blobs/uploads/")));
        let answer = self.send(start).await?;
        let place = answer.headers().get("location").context("no location")?.to_str()?.to_owned();
        let put = self.http.put(place).query(&[("digest", digest(content))]);
        self.send(put.body(content.to_vec())).await.map(drop)
    }

    pub(crate) async fn push_manifest(
        &self,
        repository: &str,
        tag: &str,
        document: &Value,
    ) -> anyhow::Result<String> {
        let content = serde_json::to_vec(document)?;
        let kind = document["mediaType"].as_str().context("no media type")?;
        let put = self.http.put(self.url(&format!("{repository}/manifests/{tag}")));
        self.send(put.header("content-type", kind).body(content.clone())).await?;
        Ok(digest(&content))
    }

    /// An image for this machine; its digest.
    pub(crate) async fn push(&self, name: &str, layers: &[Layer]) -> anyhow::Result<String> {
        self.push_for(name, machine(), layers).await
    }

    pub(crate) async fn push_for(
        &self,
        name: &str,
        architecture: &str,
        layers: &[Layer],
    ) -> anyhow::Result<String> {
        let (repository, tag) = name.split_once(':').context("a name with a tag")?;
        for layer in layers {
            self.push_blob(repository, &layer.blob).await?;
        }
        let config = configuration(architecture, layers);
        self.push_blob(repository, &config).await?;
        self.push_manifest(repository, tag, &manifest(&config, layers)).await
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
