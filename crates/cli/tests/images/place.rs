//! A daemon with a registry beside it, and what of an image is on its disk.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use anyhow::ensure;
use sandbank_test_support::{TestDaemon, find_unpacked, skip_unless_root, wait_for};

use crate::registry::Registry;

pub(crate) const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Long enough for a busy machine, short enough for a test of silence.
pub(crate) const STALL: (&str, &str) = ("SANDBANK_IMAGE_STALL_TIMEOUT_MS", "1500");

pub(crate) struct Place {
    pub(crate) daemon: TestDaemon,
    pub(crate) registry: Registry,
    /// Without credentials in it, unless a test puts some there.
    pub(crate) docker_config: tempfile::TempDir,
}

impl Place {
    /// None where it cannot be had; the reason is printed.
    pub(crate) async fn make() -> anyhow::Result<Option<Self>> {
        Self::make_as(false).await
    }

    pub(crate) async fn make_as(account: bool) -> anyhow::Result<Option<Self>> {
        if skip_unless_root() {
            return Ok(None);
        }
        let Some(program) = find_unpacked("docker-registry") else { return Ok(None) };
        let registry = Registry::start_as(&program, account).await?;
        let daemon = TestDaemon::start_with(SANDBANK, &[STALL]).await?;
        Ok(Some(Self { daemon, registry, docker_config: tempfile::tempdir()? }))
    }

    /// `sandbank image …`
    pub(crate) fn image(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.daemon.cli();
        command.arg("image").args(words).env("DOCKER_CONFIG", self.docker_config.path());
        command
    }

    pub(crate) async fn pull(&self, reference: &str, name: &str) -> anyhow::Result<Said> {
        let mut command = self.image(&["pull", reference, "--name", name]);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        Ok(Said::from(output))
    }

    pub(crate) async fn pull_ok(&self, reference: &str, name: &str) -> anyhow::Result<()> {
        let said = self.pull(reference, name).await?;
        ensure!(said.code == Some(0), "{said:?}\n{}", self.daemon.log_tail());
        Ok(())
    }

    pub(crate) fn store(&self) -> Store {
        Store::of(&self.daemon)
    }

    /// A pull that must fail with these words, and leave nothing, neither on the disk nor open.
    pub(crate) async fn refused(&self, reference: &str, words: &[&str]) -> anyhow::Result<()> {
        let before = self.store();
        let said = self.pull(reference, "refused").await?;
        ensure!(said.code.is_some_and(|code| code != 0 && code != 101), "{said:?}");
        for word in words {
            ensure!(said.err.contains(word), "{word:?} is not in {said:?}");
        }
        ensure!(said.err.contains("hint: "), "no next step: {said:?}");
        self.unchanged(&before).await
    }

    pub(crate) async fn unchanged(&self, before: &Store) -> anyhow::Result<()> {
        let limit = Duration::from_secs(10);
        wait_for("nothing to be left", limit, || async {
            self.store() == *before && self.unnamed_files() == 0
        })
        .await
        .map_err(|error| {
            error.context(format!("{:?}, {} open", self.store(), self.unnamed_files()))
        })
    }

    /// Files without a name that the daemon has open below its data directory.
    fn unnamed_files(&self) -> usize {
        let open = format!("/proc/{}/fd", self.daemon.pid().unwrap_or_default());
        let open = std::fs::read_dir(open).into_iter().flatten().flatten();
        let work = self.daemon.data_dir().join("images/work");
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .filter(|target: &PathBuf| target.starts_with(&work))
            .count()
    }
}

/// What the store has: names, layers, and work in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) names: Vec<String>,
    pub(crate) layers: Vec<String>,
    pub(crate) work: Vec<String>,
}

impl Store {
    pub(crate) fn of(daemon: &TestDaemon) -> Self {
        let images = daemon.data_dir().join("images");
        Self {
            names: names_in(&images.join("names")),
            layers: names_in(&images.join("layers")),
            work: names_in(&images.join("work")),
        }
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}
