//! A sandbox that is a directory, with the machine's own bash and tar.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sandbank_tools::{Command, Ending, Piece, Sandbox, ToolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::Instant;

pub(crate) struct Directory {
    pub(crate) workspace: PathBuf,
    /// Of what scripts see, beside their own variables.
    pub(crate) path: String,
}

impl Directory {
    pub(crate) fn new(workspace: &Path) -> Self {
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        Self { workspace: workspace.to_owned(), path }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.workspace).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace.join(path)).unwrap()
    }
}

fn failed(error: impl ToString) -> ToolError {
    ToolError::Failed(error.to_string())
}

#[async_trait]
impl Sandbox for Directory {
    fn id(&self) -> &str {
        "directory"
    }

    async fn start_with(
        &self,
        script: &str,
        variables: BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<Box<dyn Command>, ToolError> {
        let mut child = tokio::process::Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", script])
            .current_dir(&self.workspace)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.workspace)
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Box::new(Running { child, stdout, stderr, deadline: Instant::now() + timeout }))
    }

    async fn read_file(&self, path: &str, _limit: u64) -> Result<Bytes, ToolError> {
        std::fs::read(self.workspace.join(path)).map(Bytes::from).map_err(failed)
    }

    async fn write_file(&self, path: &str, content: Bytes) -> Result<(), ToolError> {
        std::fs::write(self.workspace.join(path), content).map_err(failed)
    }

    async fn unpack(
        &self,
        mut archive: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), ToolError> {
        let mut tar = tokio::process::Command::new("tar")
            .args(["--extract", "--file=-", "--directory"])
            .arg(&self.workspace)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut input = tar.stdin.take().unwrap();
        while let Some(piece) = archive.next().await {
            // Some of it, as it comes.
            input.write_all(&piece.map_err(failed)?).await.map_err(failed)?;
        }
        drop(input);
        let output = tar.wait_with_output().await.map_err(failed)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(String::from_utf8_lossy(&output.stderr))),
        }
    }

    async fn url(&self, _port: u16) -> Result<String, ToolError> {
        Err(failed("it has none"))
    }

    async fn stop(&self) -> Result<(), ToolError> {
        Ok(())
    }
}

struct Running {
    child: Child,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    deadline: Instant,
}

#[async_trait]
impl Command for Running {
    async fn next(&mut self) -> Result<Piece, ToolError> {
        let (mut one, mut other) = ([0; 4096], [0; 4096]);
        let piece = async {
            loop {
                match (&mut self.stdout, &mut self.stderr) {
                    (Some(stdout), Some(stderr)) => tokio::select! {
                        read = stdout.read(&mut one) => match read? {
                            0 => self.stdout = None,
                            read => return Ok(Piece::Stdout(Bytes::copy_from_slice(&one[..read]))),
                        },
                        read = stderr.read(&mut other) => match read? {
                            0 => self.stderr = None,
                            read => return Ok(Piece::Stderr(Bytes::copy_from_slice(&other[..read]))),
                        },
                    },
                    (Some(stdout), None) => match stdout.read(&mut one).await? {
                        0 => self.stdout = None,
                        read => return Ok(Piece::Stdout(Bytes::copy_from_slice(&one[..read]))),
                    },
                    (None, Some(stderr)) => match stderr.read(&mut other).await? {
                        0 => self.stderr = None,
                        read => return Ok(Piece::Stderr(Bytes::copy_from_slice(&other[..read]))),
                    },
                    (None, None) => {
                        let status = self.child.wait().await?;
                        return Ok(Piece::Ended(Ending::Exited(status.code().unwrap_or(137))));
                    }
                }
            }
        };
        match tokio::time::timeout_at(self.deadline, piece).await {
            Ok(piece) => piece.map_err(|error: io::Error| failed(error)),
            Err(_) => {
                self.kill().await?;
                self.child.wait().await.map_err(failed)?;
                Ok(Piece::Ended(Ending::TimedOut))
            }
        }
    }

    async fn kill(&mut self) -> Result<(), ToolError> {
        if let Some(pid) = self.child.id() {
            let group = format!("-{pid}");
            std::process::Command::new("kill")
                .args(["-KILL", "--", &group])
                .status()
                .map_err(failed)?;
        }
        Ok(())
    }
}
