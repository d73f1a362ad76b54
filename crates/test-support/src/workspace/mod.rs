//! A workspace of `/api` under test, wherever it is: as its clients reach it over HTTP, and as
//! whoever works in it does with a shell. What is done to it here is done alike to a directory,
//! behind a workspace service, and in the sandboxes of every engine.

mod differential;
mod links;
mod names;
mod outside;
mod paths;
mod races;
mod routes;
mod special_files;

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::Api;

pub use differential::the_same_answers;
pub use links::links_lead_nowhere;
pub use names::names_go_round;
pub use paths::paths_lead_nowhere;
pub use races::{a_file_that_grows_ends, one_writer_wrote_all, swapped_paths_lead_nowhere};
pub use routes::ROUTES;
pub use special_files::special_files_are_refused;

pub struct Workspace {
    pub mode: &'static str,
    pub api: Api,
    pub token: String,
    inside: Inside,
}

/// How one works in it.
enum Inside {
    Directory(PathBuf),
    Sandbox(String),
}

impl Workspace {
    /// A directory that this process sees.
    pub fn of_directory(
        mode: &'static str,
        api: Api,
        token: String,
        directory: impl Into<PathBuf>,
    ) -> Self {
        Self { mode, api, token, inside: Inside::Directory(directory.into()) }
    }

    /// Of a daemon that has no other sandbox: the first request makes this one.
    pub async fn of_sandbox(mode: &'static str, api: Api, token: String) -> anyhow::Result<Self> {
        api.call("GET", "/api/tree", None).await?;
        let sandboxes = api.sandboxes().await?;
        ensure!(sandboxes.len() == 1, "{sandboxes:?}");
        let id = sandboxes[0]["id"].as_str().context("no id")?.to_owned();
        Ok(Self { mode, api, token, inside: Inside::Sandbox(id) })
    }

    /// What a program printed that ran in the workspace and succeeded.
    pub async fn run(&self, argv: &[&str]) -> anyhow::Result<String> {
        let (is_done, said, complaint) = match &self.inside {
            Inside::Directory(_) => {
                let output = self.command(argv)?.output().await?;
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (output.status.success(), text(&output.stdout), text(&output.stderr))
            }
            Inside::Sandbox(id) => {
                let path = format!("/v1/sandboxes/{id}/commands?wait=true");
                let body = json!({ "argv": argv });
                let answer = self.api.call("POST", &path, Some(body)).await?;
                let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
                (answer["exitCode"] == 0, text("stdout"), text("stderr"))
            }
        };
        ensure!(is_done, "{argv:?} in mode {}: {complaint}", self.mode);
        Ok(said)
    }

    /// Arguments are `$1` and so on.
    pub async fn sh(&self, script: &str, arguments: &[&str]) -> anyhow::Result<String> {
        self.run(&[&["sh", "-c", script, "sh"], arguments].concat()).await
    }

    /// A program that goes on in the workspace until it is ended.
    async fn meanwhile(&self, argv: &[&str]) -> anyhow::Result<Going<'_>> {
        Ok(match &self.inside {
            Inside::Directory(_) => Going::Here(self.command(argv)?.kill_on_drop(true).spawn()?),
            Inside::Sandbox(id) => {
                let command = self.api.start(id, json!({ "argv": argv })).await?;
                let path = format!("/v1/sandboxes/{id}/commands/{command}:kill");
                Going::There { api: &self.api, path }
            }
        })
    }

    fn command(&self, argv: &[&str]) -> anyhow::Result<Command> {
        let Inside::Directory(directory) = &self.inside else { anyhow::bail!("no directory") };
        let (program, arguments) = argv.split_first().context("no program")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        Ok(command)
    }

    /// Leaves one file, `safe`.
    async fn clear(&self) -> anyhow::Result<()> {
        self.sh("find . -mindepth 1 -delete; printf safe > safe", &[]).await.map(drop)
    }

    /// Status and JSON of a request that needs no more than its path.
    async fn get(&self, path: &str) -> anyhow::Result<(u16, Value)> {
        self.api.try_call("GET", path, None).await
    }
}

enum Going<'a> {
    Here(Child),
    There { api: &'a Api, path: String },
}

impl Going<'_> {
    async fn end(self) -> anyhow::Result<()> {
        match self {
            Self::Here(mut child) => {
                ensure!(child.try_wait()?.is_none(), "what went on meanwhile has ended");
                Ok(child.kill().await?)
            }
            Self::There { api, path } => api.call("POST", &path, None).await.map(drop),
        }
    }
}
