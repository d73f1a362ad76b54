//! What a `run` without a server leaves when it is killed: a sandbox that nobody wanted to keep, in
//! the data directory or in a temporary one. A lock is free again when its process is gone, so
//! whoever has the directory next knows that nobody waits for it, and removes it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sandbank_orchestrator::{Orchestrator, SandboxKey};
use sandbank_server::config::{Settings, StorageKind};

use super::{Daemon, DataDir, Holder, OwnDaemon, holder};
use crate::failure::Failure;
use crate::scratch::Scratch;

/// Of temporary data directories: no other directory is ever looked into.
pub(super) const TEMPORARY: &str = "sandbank-run";

/// The key of the sandbox that goes with the run that has the data directory.
const GOES: &str = "run";

/// In a temporary data directory: where its machines are made.
const MADE_BY: &str = "made-by";

/// Says that a sandbox goes with this process.
pub(crate) struct Mark(PathBuf);

impl Mark {
    pub(super) fn set(data_dir: &Path, key: &str) -> Result<Self, Failure> {
        let path = data_dir.join(GOES);
        let written = std::fs::write(&path, key);
        written.map_err(Failure::io(format_args!("write {}", path.display())))?;
        Ok(Self(path))
    }

    /// The sandbox is gone, or stays because somebody wants it.
    pub(crate) fn take_away(self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a run's mark stays");
        }
    }
}

/// Stops the sandbox of a run that was killed. What cannot be stopped now is left for the next.
pub(super) async fn stop(data_dir: &Path, orchestrator: &Orchestrator) {
    let path = data_dir.join(GOES);
    let Ok(key) = std::fs::read_to_string(&path) else { return };
    let mark = Mark(path);
    let Ok(key) = key.parse::<SandboxKey>() else { return mark.take_away() };
    let found = match orchestrator.find_key(&key).await {
        Ok(found) => found.filter(|sandbox| !sandbox.state.is_over()),
        Err(error) => return tracing::warn!(%error, "what a killed run left is not known"),
    };
    if let Some(sandbox) = found {
        tracing::info!(sandbox = %sandbox.id, "removing what a killed run left");
        if let Err(error) = orchestrator.stop(&sandbox.id, "the end of its run").await {
            return tracing::warn!(%error, "what a killed run left stays");
        }
    }
    mark.take_away();
}

/// Says in a temporary data directory where its machines are made, before any is.
pub(super) fn sign(data_dir: &Path, settings: &Settings) -> Result<(), Failure> {
    let path = data_dir.join(MADE_BY);
    let written = std::fs::write(&path, engines_of(settings));
    written.map_err(Failure::io(format_args!("write {}", path.display())))
}

/// Which engines, and whose: with others, what is in a directory would not be found, and be taken for gone.
fn engines_of(settings: &Settings) -> String {
    let docker = ["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"].map(std::env::var_os);
    let Settings { engine, other_engines, .. } = settings;
    format!("{engine:?} {other_engines:?} {:?} {docker:?}", settings.docker.host)
}

/// Removes the temporary directories of killed runs over the same engines, and the sandboxes in them.
pub(super) async fn sweep(settings: &Settings) {
    let engines = engines_of(settings);
    for place in forsaken(&std::env::temp_dir(), &engines) {
        let path = place.display().to_string();
        tracing::info!(path, "removing what a killed run left");
        if let Err(failure) = remove(settings.clone(), &place).await {
            tracing::warn!(path, %failure, "what a killed run left stays");
        }
    }
}

/// Our own, and nobody has them; with machines in them only those of the same engines.
fn forsaken(temporary: &Path, engines: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name();
        let named = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY));
        let own = |found: std::fs::Metadata| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        };
        named.is_some_and(|rest| rest.starts_with('-')) && entry.metadata().is_ok_and(own)
    });
    let ours_alone = |path: &PathBuf| {
        let signed = std::fs::read_to_string(path.join(MADE_BY));
        let can_be_emptied = !Daemon::was_in(path) || signed.is_ok_and(|signed| signed == engines);
        can_be_emptied && holder(path) == Holder::Nobody
    };
    ours.map(|entry| entry.path()).filter(ours_alone).collect()
}

async fn remove(mut settings: Settings, place: &Path) -> Result<(), Failure> {
    let mut data_dir = DataDir::take(place)?;
    data_dir.announce_private()?;
    // Until the directory is gone.
    let _held = data_dir.hold()?;
    if !Daemon::was_in(place) {
        drop(Scratch::adopt(place));
        return Ok(());
    }
    settings.storage.kind = StorageKind::Plain;
    let own = Box::pin(OwnDaemon::over(settings, data_dir, None, None, None)).await?;
    let stopped = stop_all(&own).await;
    own.stop().await;
    // As long as there is something in it, somebody has to find it.
    stopped.map(|()| drop(Scratch::adopt(place)))
}

async fn stop_all(own: &OwnDaemon) -> Result<(), Failure> {
    for sandbox in own.client().sandboxes().await? {
        if let Some(id) = sandbox["id"].as_str() {
            own.client().stop_sandbox(id).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_directories_of_ours_that_nobody_has_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["sandbank-run-killed", "sandbank-run-living", "sandbank-test-1", "sandbank"] {
            drop(DataDir::take(&path(name)).unwrap());
        }
        // Nobody can tell what this is.
        std::fs::create_dir(path("sandbank-run-empty")).unwrap();
        std::os::unix::fs::symlink(path("sandbank-test-1"), path("sandbank-run-link")).unwrap();
        let _living = DataDir::take(&path("sandbank-run-living")).unwrap();
        assert_eq!(forsaken(dir.path(), "native"), [path("sandbank-run-killed")]);
        // What is in it, only the same engines find.
        Daemon::pretend_in(&path("sandbank-run-killed"));
        assert_eq!(forsaken(dir.path(), "native"), [] as [PathBuf; 0]);
        std::fs::write(path("sandbank-run-killed").join(MADE_BY), "docker").unwrap();
        assert_eq!(forsaken(dir.path(), "native"), [] as [PathBuf; 0]);
        assert_eq!(forsaken(dir.path(), "docker"), [path("sandbank-run-killed")]);
    }

    #[test]
    fn a_mark_is_there_until_it_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let mark = Mark::set(dir.path(), "run-1").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(GOES)).unwrap(), "run-1");
        mark.take_away();
        assert!(!dir.path().join(GOES).exists());
    }
}
