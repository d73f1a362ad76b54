//! Sandboxes: make, find, describe, remove, and their ports.

use std::collections::BTreeMap;

use sandbank_engine::SandboxId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Client, ClientError, segment};
use crate::failure::{Exit, Failure};
use crate::limits::LIFECYCLE_TIMEOUT;
use crate::ui::text;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxRequest {
    pub(crate) session_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_ttl_ms: Option<u64>,
    pub(crate) resources: Resources,
    pub(crate) network: Network,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vcpus: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_mb: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Network {
    pub(crate) mode: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Created {
    pub(crate) sandbox_id: String,
}

/// What the tables show; `--json` passes the server's own description on.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    pub(crate) engine: String,
    pub(crate) image: String,
    pub(crate) network: String,
    pub(crate) limits: Limits,
    pub(crate) ports: Vec<u16>,
    pub(crate) published: Vec<PublishedPort>,
    pub(crate) workspace: Option<String>,
    pub(crate) created_at_ms: u64,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) ends_at_ms: Option<u64>,
    pub(crate) busy: bool,
    pub(crate) commands_running: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Limits {
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) pids: u64,
    pub(crate) disk_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PublishedPort {
    pub(crate) port: u16,
    pub(crate) host_port: u16,
    pub(crate) url: String,
}

#[derive(Deserialize)]
struct Listing {
    sandboxes: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PortAnswer {
    found: bool,
    #[serde(default)]
    host_port: u16,
    #[serde(default)]
    url: String,
}

impl Client {
    pub(crate) async fn create(&self, request: &SandboxRequest) -> Result<Created, ClientError> {
        let request = self.post("/v1/sandboxes").timeout(LIFECYCLE_TIMEOUT).json(request);
        self.json(request).await
    }

    /// Every sandbox as the server describes it.
    pub(crate) async fn sandboxes(&self) -> Result<Vec<Value>, ClientError> {
        Ok(self.json::<Listing>(self.get("/v1/sandboxes")).await?.sandboxes)
    }

    pub(crate) async fn sandbox(&self, id: &str) -> Result<Value, ClientError> {
        self.json(self.get(&format!("/v1/sandboxes/{}", segment(id)))).await
    }

    pub(crate) async fn sandbox_stats(&self, id: &str) -> Result<Value, ClientError> {
        self.json(self.get(&format!("/v1/sandboxes/{}/stats", segment(id)))).await
    }

    pub(crate) async fn post_mortem(&self, id: &str) -> Result<Value, ClientError> {
        self.json(self.get(&format!("/v1/sandboxes/{}/post-mortem", segment(id)))).await
    }

    /// Removes it, too, but by sandboxd's route, which is open to whoever may create; one that is
    /// already gone is no error.
    pub(crate) async fn stop_sandbox(&self, id: &str) -> Result<(), ClientError> {
        let request = self.post(&format!("/v1/sandboxes/{}:stop", segment(id)));
        self.send(request.timeout(LIFECYCLE_TIMEOUT)).await.map(drop)
    }

    pub(crate) async fn remove_sandbox(&self, id: &str) -> Result<(), ClientError> {
        let request = self.delete(&format!("/v1/sandboxes/{}", segment(id)));
        self.send(request.timeout(LIFECYCLE_TIMEOUT)).await.map(drop)
    }

    /// None when the port is not in the sandbox's allow-list.
    pub(crate) async fn publish_port(
        &self,
        id: &str,
        port: u16,
    ) -> Result<Option<PublishedPort>, ClientError> {
        let path = format!("/v1/sandboxes/{}/ports/{port}", segment(id));
        let answer: PortAnswer = self.json(self.get(&path)).await?;
        let PortAnswer { found, host_port, url } = answer;
        Ok(found.then_some(PublishedPort { port, host_port, url }))
    }

    pub(crate) async fn unpublish_port(&self, id: &str, port: u16) -> Result<(), ClientError> {
        let path = format!("/v1/sandboxes/{}/ports/{port}", segment(id));
        self.send(self.delete(&path)).await.map(drop)
    }

    /// The id behind what a person typed: an id, the unique beginning of one, or a key.
    pub(crate) async fn resolve(&self, name: &str) -> Result<String, Failure> {
        if name.parse::<SandboxId>().is_ok() {
            return Ok(name.to_owned());
        }
        let sandboxes = self.sandboxes().await?;
        choose(name, &sandboxes.iter().map(description).collect::<Vec<_>>())
    }

    /// The id behind the first of these names that there is, and its place.
    pub(crate) async fn resolve_first(&self, names: &[&str]) -> Result<(String, usize), Failure> {
        if let [only] = names {
            return Ok((self.resolve(only).await?, 0));
        }
        let sandboxes = self.sandboxes().await?;
        choose_first(names, &sandboxes.iter().map(description).collect::<Vec<_>>())
    }
}

/// Of several readings of one text, all names of which were there to be typed.
fn choose_first(names: &[&str], sandboxes: &[Sandbox]) -> Result<(String, usize), Failure> {
    let exact = |name: &str| sandboxes.iter().find(|one| one.key == name || one.id == name);
    let known = names.iter().enumerate().find_map(|(place, name)| Some((exact(name)?, place)));
    if let Some((sandbox, place)) = known {
        return Ok((sandbox.id.clone(), place));
    }
    let mut last = None;
    for (place, name) in names.iter().enumerate() {
        match choose(name, sandboxes) {
            Ok(id) => return Ok((id, place)),
            Err(failure) => last = Some(failure),
        }
    }
    Err(last.unwrap_or_else(|| Failure::usage("no sandbox is named")))
}

/// A description the tables can use; missing fields are empty.
pub(crate) fn description(value: &Value) -> Sandbox {
    Sandbox::deserialize(value).unwrap_or_default()
}

fn choose(name: &str, sandboxes: &[Sandbox]) -> Result<String, Failure> {
    if let Some(by_key) = sandboxes.iter().find(|sandbox| sandbox.key == name) {
        return Ok(by_key.id.clone());
    }
    let matching: Vec<_> = sandboxes.iter().filter(|s| starts_with(&s.id, name)).collect();
    let shown = text::printable(name);
    match matching.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(Failure::new(Exit::Refused, format!("there is no sandbox {shown:?}"))
            .hint("`sandbank ps` lists ids and keys")),
        several => {
            let ids: Vec<_> = several.iter().map(|sandbox| sandbox.id.as_str()).collect();
            Err(Failure::usage(format!("{shown:?} begins more than one id: {}", ids.join(", ")))
                .hint("type a few more characters"))
        }
    }
}

/// With or without the `sb` that every id begins with.
fn starts_with(id: &str, name: &str) -> bool {
    !name.is_empty()
        && (id.starts_with(name)
            || id.strip_prefix("sb").is_some_and(|rest| rest.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(id: &str, key: &str) -> Sandbox {
        Sandbox { id: id.into(), key: key.into(), ..Sandbox::default() }
    }

    #[test]
    fn a_sandbox_is_found_by_key_or_by_the_beginning_of_its_id() {
        let all = [sandbox("sbabcd", "chat:1"), sandbox("sbabzz", "sbabcd"), sandbox("sbqq", "x")];
        assert_eq!(choose("chat:1", &all).unwrap(), "sbabcd");
        assert_eq!(choose("sbabc", &all).unwrap(), "sbabcd");
        assert_eq!(choose("qq", &all).unwrap(), "sbqq");
        assert_eq!(choose("sbabcd", &all).unwrap(), "sbabzz", "a key wins over a prefix");
        assert_eq!(choose("sbab", &all).unwrap_err().exit, Exit::Usage);
        assert_eq!(choose("nope", &all).unwrap_err().exit, Exit::Refused);
        assert_eq!(choose("", &all).unwrap_err().exit, Exit::Refused);
    }

    #[test]
    fn of_several_readings_the_first_name_that_there_is_counts() {
        let all = [sandbox("sbabcd", "chat:1"), sandbox("sbqq", "chat"), sandbox("sbzz", "x")];
        let first = |names: &[&str]| choose_first(names, &all).map_err(|failure| failure.message);
        assert_eq!(first(&["chat:1", "chat"]), Ok(("sbabcd".to_owned(), 0)));
        assert_eq!(first(&["chat:2", "chat"]), Ok(("sbqq".to_owned(), 1)));
        assert_eq!(first(&["zz:a", "zz"]), Ok(("sbzz".to_owned(), 1)), "by the beginning of an id");
        assert_eq!(first(&["yy:b", "yy"]), Err("there is no sandbox \"yy\"".to_owned()));
    }
}
