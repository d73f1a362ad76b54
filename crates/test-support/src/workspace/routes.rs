//! Every route of `/api` with a path in it, and what holds for the answer whatever the path is.

use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use super::Workspace;
use super::outside::CANARY;

/// Nothing hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// Every route with a path in it, and where in it the path is.
pub const ROUTES: [&str; 16] = [
    "tree",
    "read",
    "search",
    "diff",
    "show",
    "rename from",
    "rename to",
    "move from",
    "move into",
    "attachment",
    "approval status",
    "approval delete",
    "sandbox",
    "sandbox activate",
    "write",
    "delete",
];

/// Of a path that is a name of ours, and none of the workspace's.
pub(super) fn takes_other_names(route: &str) -> bool {
    route.starts_with("approval") || route.starts_with("sandbox") || route == "attachment"
}

/// After it the workspace may be another one.
pub(super) fn changes_files(route: &str) -> bool {
    ["rename", "move", "write", "delete", "attachment"].iter().any(|verb| route.starts_with(verb))
}

impl Workspace {
    pub fn request(&self, route: &str, path: &str) -> RequestBuilder {
        let api = |method: &str, route: &str| self.api.request(method, route);
        let at = |method: &str, route: &str| api(method, route).query(&[("path", path)]);
        let rename = |body: Value| api("POST", "/api/file/rename").json(&body);
        let move_into = |body: Value| api("POST", "/api/file/move").json(&body);
        let segment = |prefix: &str, suffix: &str| {
            let encoded: String =
                path.bytes().take(3_000).map(|byte| format!("%{byte:02x}")).collect();
            format!("{prefix}{encoded}{suffix}")
        };
        match route {
            "tree" => at("GET", "/api/tree"),
            "read" => at("GET", "/api/file"),
            "search" => at("GET", "/api/search").query(&[("q", "*")]),
            "diff" => at("GET", "/api/git/diff"),
            "show" => at("GET", "/api/git/show"),
            "rename from" => rename(json!({ "old_path": path, "new_path": "renamed" })),
            "rename to" => rename(json!({ "old_path": "safe", "new_path": path })),
            "move from" => move_into(json!({ "src_path": path, "dest_dir": "." })),
            "move into" => move_into(json!({ "src_path": "safe", "dest_dir": path })),
            "attachment" => {
                let file = Part::bytes(b"x".to_vec()).file_name(path.to_owned());
                api("POST", "/api/attachments").multipart(Form::new().part("file", file))
            }
            "approval status" => api("GET", &segment("/api/approval/status/", "")),
            "approval delete" => api("DELETE", &segment("/api/approval/", "")),
            "sandbox" => api("GET", &segment("/api/sandbox/", "")),
            "sandbox activate" => api("POST", &segment("/api/sandbox/", "/activate")),
            "write" => at("PUT", "/api/file").json(&json!({ "content": "overwritten" })),
            "delete" => at("DELETE", "/api/file"),
            other => panic!("{other} is no route"),
        }
    }

    /// The answer, which came in time, is no failure of ours and tells nothing from outside.
    pub async fn attacked(&self, route: &str, path: &str) -> anyhow::Result<(u16, Value)> {
        let about = format!("{route} with {path:?} in mode {}", self.mode);
        let sent = tokio::time::timeout(DEADLINE, self.request(route, path).send());
        let response = sent.await.with_context(|| format!("{about} hangs"))??;
        let status = response.status().as_u16();
        let body = response.text().await?;
        ensure!(status < 500, "{about}: {status} {body}");
        for private in [CANARY, "root:x:0:", self.token.as_str()] {
            ensure!(!body.contains(private), "{about} told {private}: {body}");
        }
        Ok((status, serde_json::from_str(&body).unwrap_or(Value::Null)))
    }
}
