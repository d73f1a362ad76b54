//! A directory of this machine, copied into the workspace as one archive.
//!
//! The directory is walked by descriptor: no link is followed and no other file system entered, whatever
//! is swapped meanwhile. What looks like a secret stays here. Of a repository only what git tracks goes.

mod archive;
mod include;
mod plan;
mod report;
mod secrets;
mod tracked;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use sandbank_rooted_fs::{RelPath, Root};
use tokio::sync::mpsc;

pub use include::Include;
pub use report::{Skipped, UploadReport};

use super::limits::{PIECES_WAITING, UPLOAD_ATTEMPTS};
use super::{Progress, SeedError};
use crate::Sandbox;
use archive::Written;
use plan::Plan;

#[derive(Debug, Clone)]
pub struct UploadSeed {
    /// Absolute; of the configuration, so its own path is trusted.
    pub root: PathBuf,
    pub include: Include,
}

impl UploadSeed {
    pub async fn upload_into(
        &self,
        sandbox: &dyn Sandbox,
        progress: Progress<'_>,
    ) -> Result<UploadReport, SeedError> {
        let tracked = tracked::files(&self.root).await?;
        let (path, include) = (self.root.clone(), self.include.clone());
        let planning = move || {
            let cannot = |error: &dyn ToString| SeedError::Root {
                root: path.clone(),
                reason: error.to_string(),
            };
            let root = Root::open(&path, [""; 0]).map_err(|error| cannot(&error))?;
            let top = root.open_directory(&RelPath::root()).map_err(|error| cannot(&error))?;
            let plan = Plan::make(top, tracked.as_ref(), &include)?;
            Ok::<_, SeedError>((Arc::new(root), Arc::new(plan)))
        };
        let (root, plan) = run(planning).await??;
        progress(&format!("uploading {} files, {} bytes", plan.files.len(), plan.bytes));
        let mut attempt = 1;
        loop {
            match send(sandbox, &root, &plan, progress).await {
                Err(SeedError::Changed { path }) if attempt < UPLOAD_ATTEMPTS => {
                    tracing::info!(path, "a file became shorter while it was uploaded; once more");
                    attempt += 1;
                }
                done => return done,
            }
        }
    }
}

async fn send(
    sandbox: &dyn Sandbox,
    root: &Arc<Root>,
    plan: &Arc<Plan>,
    progress: Progress<'_>,
) -> Result<UploadReport, SeedError> {
    let (pieces, archive) = mpsc::channel(PIECES_WAITING);
    let (tell, mut told) = mpsc::unbounded_channel();
    let (root, plan) = (root.clone(), plan.clone());
    let writing = run(move || archive::write(&root, &plan, pieces, &tell));
    let unpacking = sandbox.unpack(stream_of(archive));
    let (written, unpacked) = {
        let both = async { tokio::join!(writing, unpacking) };
        tokio::pin!(both);
        loop {
            tokio::select! {
                both = &mut both => break both,
                Some(line) = told.recv() => {
                    let line: String = line;
                    progress(&line);
                }
            }
        }
    };
    match (written?, unpacked) {
        (Ok(Written::Whole(report)), Ok(())) => Ok(report),
        // Nobody read it to its end, and says why.
        (Ok(_), Err(error)) => Err(error.into()),
        (Ok(Written::Unread), Ok(())) => {
            let reason = "the sandbox did not read the whole archive".to_owned();
            Err(crate::ToolError::Failed(reason).into())
        }
        (Err(error), _) => Err(error),
    }
}

fn stream_of(archive: mpsc::Receiver<io::Result<Bytes>>) -> BoxStream<'static, io::Result<Bytes>> {
    let next =
        |mut archive: mpsc::Receiver<_>| async move { Some((archive.recv().await?, archive)) };
    stream::unfold(archive, next).boxed()
}

async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SeedError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| crate::ToolError::Failed(format!("an upload broke off: {error}")).into())
}
