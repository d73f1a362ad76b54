//! Images: list, import from an archive on the server's machine, pull from a registry, remove, prune.

use sandbank_registry::Credentials;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ndjson::Lines;
use super::{Client, ClientError, segment};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) engine: String,
    pub(crate) digest: Option<String>,
    pub(crate) size_bytes: u64,
    pub(crate) layers: u32,
    pub(crate) imported_at_ms: Option<u64>,
}

/// One line of an import's answer.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ImportStep {
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
    pub(crate) image: Option<Value>,
    pub(crate) error: Option<String>,
    pub(crate) hint: Option<String>,
}

/// What a removal gave back; nothing is said by servers that do not know.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Cleared {
    pub(crate) freed_layers: u32,
    pub(crate) freed_bytes: u64,
}

#[derive(Deserialize)]
pub(crate) struct Listing {
    pub(crate) images: Vec<Value>,
    /// Engines whose images are not known now.
    #[serde(default)]
    pub(crate) unavailable: Vec<String>,
}

impl Client {
    pub(crate) async fn images(&self) -> Result<Listing, ClientError> {
        self.json(self.get("/v1/images")).await
    }

    /// Calls `step` for each line of progress.
    pub(crate) async fn import_image(
        &self,
        name: &str,
        path: &str,
        engine: Option<&str>,
        step: impl FnMut(&ImportStep),
    ) -> Result<Option<ImportStep>, ClientError> {
        let body = json!({ "name": name, "path": path });
        self.take_image("import", body, engine, step).await
    }

    /// The same with an image of a registry. Dropping the future ends the pull.
    pub(crate) async fn pull_image(
        &self,
        name: Option<&str>,
        reference: &str,
        credentials: Option<&Credentials>,
        engine: Option<&str>,
        step: impl FnMut(&ImportStep),
    ) -> Result<Option<ImportStep>, ClientError> {
        let mut body = json!({ "reference": reference });
        if let Some(name) = name {
            body["name"] = name.into();
        }
        if let Some(Credentials { username, password }) = credentials {
            body["username"] = username.as_str().into();
            body["password"] = password.as_str().into();
        }
        self.take_image("pull", body, engine, step).await
    }

    async fn take_image(
        &self,
        verb: &str,
        mut body: Value,
        engine: Option<&str>,
        mut step: impl FnMut(&ImportStep),
    ) -> Result<Option<ImportStep>, ClientError> {
        if let Some(engine) = engine {
            body["engine"] = engine.into();
        }
        let request = self.request(reqwest::Method::POST, &format!("/v1/images:{verb}"));
        let response = self.send(request.json(&body)).await?;
        let mut lines = Lines::new(self.clone(), response);
        let mut last = None;
        while let Some(line) = lines.next::<ImportStep>().await? {
            step(&line);
            last = Some(line);
        }
        Ok(last)
    }

    pub(crate) async fn remove_image(
        &self,
        name: &str,
        engine: Option<&str>,
    ) -> Result<Cleared, ClientError> {
        let request = self.delete(&format!("/v1/images/{}", segment(name)));
        self.json(request.query(&of(engine))).await
    }

    /// Removes what no image and no sandbox is made of.
    pub(crate) async fn prune_images(&self, engine: Option<&str>) -> Result<Cleared, ClientError> {
        let request = self.request(reqwest::Method::POST, "/v1/images:prune");
        self.json(request.query(&of(engine))).await
    }
}

fn of(engine: Option<&str>) -> Vec<(&'static str, &str)> {
    engine.map(|name| ("engine", name)).into_iter().collect()
}
