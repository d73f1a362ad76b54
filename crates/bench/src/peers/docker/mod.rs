//! Docker, spoken to through its HTTP API on the socket of a private daemon.

mod cli;
mod daemon;
mod image;
mod output;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::host_root::{self, CPU_PERIOD, CPU_QUOTA, MEMORY_BYTES, PIDS, WORKSPACE};
use super::{Cycle, blocking, process};
use crate::http::{Address, Client, Payload, Raw};
pub(crate) use cli::Cli;
use daemon::DockerDaemon;
use output::OutputFrames;

/// Mount points for the host's `/usr`, as the other peers have it.
const HOST: &str = "sandbank-bench";

/// A few programs of the host with their libraries, and nothing of the host mounted.
pub(crate) const PROGRAMS: &str = "sandbank-bench-programs";

pub(crate) struct Docker {
    daemon: DockerDaemon,
    client: Client,
    pub(crate) version: String,
    /// Or why there is none.
    pub(crate) cli: Result<Cli, String>,
}

/// A container by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With the host's `/usr`.
    Host,
    /// With what a sandbox on Docker has, too: an image with everything in it, a root that cannot be
    /// written to, a volume as workspace, a `/tmp` in memory.
    Programs,
}

impl Docker {
    /// The inner error is a reason to do without it.
    pub(crate) async fn find() -> anyhow::Result<Result<Self, String>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Err("its daemon needs root".into()));
        }
        let Some(program) = process::find("dockerd") else {
            return Ok(Err("there is no dockerd here (Debian: apt-get install docker.io)".into()));
        };
        let daemon = DockerDaemon::start(&program)?;
        let client = Client::new(Address::Unix(daemon.socket()), None);
        let cli = Cli::find(&daemon.socket(), daemon.dir());
        let mut docker = Self { daemon, client, version: String::new(), cli };
        match docker.prepare().await {
            Ok(()) => Ok(Ok(docker)),
            Err(error) => {
                let log = docker.daemon.log_end();
                docker.finish().await?;
                Ok(Err(format!("a private daemon of it does not work here: {error:#}; {log}")))
            }
        }
    }

    async fn prepare(&mut self) -> anyhow::Result<()> {
        while self.client.call(Method::GET, "/version", None).await.is_err() {
            self.daemon.is_worth_waiting_for()?;
            tokio::time::sleep(crate::limits::POLL).await;
        }
        let version = self.client.call(Method::GET, "/version", None).await?;
        self.version = version["Version"].as_str().unwrap_or("of unknown version").to_owned();
        let dir = self.daemon.dir();
        let (bare, full) = (dir.join("bare"), dir.join("programs"));
        self.import(HOST, blocking(move || image::mount_points(&bare)).await?).await?;
        self.import(PROGRAMS, blocking(move || image::programs(&full)).await?).await?;
        for kind in [Kind::Host, Kind::Programs] {
            let id = self.create(kind).await?;
            self.exec(&id, &["true"]).await?;
            self.remove(&id).await?;
        }
        Ok(())
    }

    async fn import(&self, name: &str, archive: Vec<u8>) -> anyhow::Result<()> {
        let path = format!("/images/create?fromSrc=-&repo={name}&tag=latest");
        let length = archive.len() as u64;
        let payload = Payload::repeated(Bytes::from(archive), length);
        let mut reply = self.client.open(Method::POST, &path, payload).await?;
        while reply.chunk().await?.is_some() {}
        Ok(())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.daemon.socket()
    }

    /// Create and start, until the start is answered; what is inside by then is not waited for.
    pub(crate) async fn create(&self, kind: Kind) -> anyhow::Result<String> {
        let body = container(kind);
        let made = self.client.call(Method::POST, "/containers/create", Some(body)).await?;
        let id = made["Id"].as_str().context("a container without Id")?.to_owned();
        self.client.call(Method::POST, &format!("/containers/{id}/start"), None).await?;
        Ok(id)
    }

    pub(crate) async fn remove(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("/containers/{id}?force=1&v=1");
        self.client.call(Method::DELETE, &path, None).await.map(drop)
    }

    pub(crate) async fn cycle(&self, kind: Kind) -> anyhow::Result<Cycle> {
        let begin = Instant::now();
        let id = self.create(kind).await?;
        let ready = begin.elapsed();
        let begin = Instant::now();
        self.remove(&id).await?;
        Ok(Cycle { ready, gone: begin.elapsed() })
    }

    /// The exec API: create, start and read to the end, inspect. Gives the output's length.
    pub(crate) async fn exec(&self, id: &str, argv: &[&str]) -> anyhow::Result<u64> {
        let exec = self.new_exec(id, argv, false).await?;
        let start = Payload::json(&json!({ "Detach": false, "Tty": false }));
        let path = format!("/exec/{exec}/start");
        let mut reply = self.client.open(Method::POST, &path, start).await?;
        let mut frames = OutputFrames::default();
        while let Some(chunk) = reply.chunk().await? {
            frames.push(&chunk);
        }
        let ended = self.client.call(Method::GET, &format!("/exec/{exec}/json"), None).await?;
        anyhow::ensure!(ended["ExitCode"] == 0, "{argv:?} ended with {}", ended["ExitCode"]);
        Ok(frames.payload)
    }

    /// A terminal in a container: what is written is typed, what is read is shown.
    pub(crate) async fn terminal(&self, id: &str, argv: &[&str]) -> anyhow::Result<Raw> {
        let exec = self.new_exec(id, argv, true).await?;
        let start = json!({ "Detach": false, "Tty": true });
        self.client.upgrade(&format!("/exec/{exec}/start"), &start).await
    }

    async fn new_exec(&self, id: &str, argv: &[&str], tty: bool) -> anyhow::Result<String> {
        let body = json!({
            "Cmd": argv, "AttachStdin": tty, "AttachStdout": true, "AttachStderr": true, "Tty": tty,
        });
        let path = format!("/containers/{id}/exec");
        let made: Value = self.client.call(Method::POST, &path, Some(body)).await?;
        Ok(made["Id"].as_str().context("an exec without Id")?.to_owned())
    }

    pub(crate) async fn pause(&self, id: &str) -> anyhow::Result<()> {
        self.client.call(Method::POST, &format!("/containers/{id}/pause"), None).await.map(drop)
    }

    pub(crate) async fn resume(&self, id: &str) -> anyhow::Result<()> {
        self.client.call(Method::POST, &format!("/containers/{id}/unpause"), None).await.map(drop)
    }

    /// Removes what containers there are, ends the daemon, deletes its directory.
    pub(crate) async fn finish(self) -> anyhow::Result<()> {
        let listed = self.client.call(Method::GET, "/containers/json?all=1", None).await;
        if let Ok(Value::Array(containers)) = listed {
            for id in containers.iter().filter_map(|container| container["Id"].as_str()) {
                let _ = self.remove(id).await;
            }
        }
        self.daemon.finish().await
    }
}

fn container(kind: Kind) -> Value {
    let mut host = json!({
        "NetworkMode": "none",
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Memory": MEMORY_BYTES,
        "PidsLimit": PIDS,
        "CpuPeriod": CPU_PERIOD,
        "CpuQuota": CPU_QUOTA,
        "LogConfig": { "Type": "none" },
    });
    let image = match kind {
        Kind::Host => {
            host["Binds"] = json!(["/usr:/usr:ro"]);
            HOST
        }
        Kind::Programs => {
            host["ReadonlyRootfs"] = json!(true);
            host["Mounts"] = json!([{ "Type": "volume", "Target": WORKSPACE }]);
            host["Tmpfs"] = json!({ "/tmp": "" });
            PROGRAMS
        }
    };
    json!({
        "Image": image,
        "Cmd": ["sleep", "infinity"],
        "User": host_root::USER.to_string(),
        "Env": ["PATH=/usr/bin:/bin", format!("HOME={WORKSPACE}")],
        "WorkingDir": WORKSPACE,
        "HostConfig": host,
    })
}
