//! What the clients were told, and so must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::ensure;
use sandbank_test_support::Api;

/// Sandboxes by id.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) living: BTreeMap<String, Promised>,
    pub(super) deleted: BTreeSet<String>,
    pub(super) commands: u64,
}

#[derive(Debug, Default)]
pub(super) struct Promised {
    pub(super) key: String,
    /// Content by path, of every acknowledged write.
    pub(super) files: BTreeMap<String, String>,
    /// Where its port is published, once that was asked for.
    pub(super) host_port: Option<u64>,
    /// Ids of commands that ended, with the codes they ended with.
    pub(super) endings: BTreeMap<String, i64>,
}

impl Model {
    pub(super) fn merge(&mut self, other: Self) {
        self.living.extend(other.living);
        self.deleted.extend(other.deleted);
        self.commands += other.commands;
    }

    pub(super) fn living(&self) -> BTreeSet<String> {
        self.living.keys().cloned().collect()
    }

    /// Everything once more, when the storm is over.
    pub(super) async fn verify(&self, api: &Api) -> anyhow::Result<()> {
        for (id, promised) in &self.living {
            promised.verify(api, id).await?;
        }
        for id in &self.deleted {
            let (status, answer) =
                api.try_call("GET", &format!("/v1/sandboxes/{id}"), None).await?;
            let over = matches!(answer["state"].as_str(), Some("gone" | "failed"));
            ensure!(status == 404 || over, "{id} was deleted, and is {status} {answer}");
        }
        Ok(())
    }
}

impl Promised {
    async fn verify(&self, api: &Api, id: &str) -> anyhow::Result<()> {
        for (path, content) in &self.files {
            let found = api.read(id, path).await?;
            ensure!(found.as_deref() == Some(content.as_bytes()), "{path} of {id} was lost");
        }
        for (command, code) in &self.endings {
            ensure!(api.wait(id, command).await? == *code, "{command} of {id} ended otherwise");
        }
        if let Some(host_port) = self.host_port {
            let now = api.call("GET", &format!("/v1/sandboxes/{id}/ports/4000"), None).await?;
            ensure!(now["hostPort"] == host_port, "the port of {id} moved: {now}");
        }
        Ok(())
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: usize = self.living.values().map(|promised| promised.files.len()).sum();
        let (living, deleted, commands) = (self.living.len(), self.deleted.len(), self.commands);
        write!(
            f,
            "{living} sandboxes with {files} files live, {deleted} deleted, {commands} commands"
        )
    }
}
