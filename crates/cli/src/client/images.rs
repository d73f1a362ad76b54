//! Images: list, import from an archive on the server's machine, remove.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ndjson::Lines;
use super::{Client, ClientError, segment};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Image {
    pub(crate) name: String,
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

#[derive(Deserialize)]
struct Listing {
    images: Vec<Value>,
}

impl Client {
    pub(crate) async fn images(&self) -> Result<Vec<Value>, ClientError> {
        Ok(self.json::<Listing>(self.get("/v1/images")).await?.images)
    }

    /// Calls `step` for each line of progress.
    pub(crate) async fn import_image(
        &self,
        name: &str,
        path: &str,
        mut step: impl FnMut(&ImportStep),
    ) -> Result<Option<ImportStep>, ClientError> {
        let request = self.request(reqwest::Method::POST, "/v1/images:import");
        let response = self.send(request.json(&json!({ "name": name, "path": path }))).await?;
        let mut lines = Lines::new(self.clone(), response);
        let mut last = None;
        while let Some(line) = lines.next::<ImportStep>().await? {
            step(&line);
            last = Some(line);
        }
        Ok(last)
    }

    pub(crate) async fn remove_image(&self, name: &str) -> Result<(), ClientError> {
        self.send(self.delete(&format!("/v1/images/{}", segment(name)))).await.map(drop)
    }
}
