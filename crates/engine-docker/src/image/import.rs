//! From an archive to an image of Docker's. Nothing of Docker's changes but the name that was asked
//! for, and that only at the end.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::query_parameters::{
    CreateImageOptionsBuilder, ImportImageOptionsBuilder, ListImagesOptionsBuilder,
    RemoveImageOptionsBuilder, TagImageOptionsBuilder,
};
use futures_util::{StreamExt, TryStreamExt};
use sandbank_engine::{EngineError, ImageName, ImportProgress};
use sandbank_image_archive::ImportLimits;
use tokio::time::Instant;

use super::checked::{Checked, Rules};
use super::outgoing::pieces;
use crate::connection::{Client, SEE_LOG};

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// What the configuration says about imports.
pub(crate) struct Importing<'a> {
    pub(crate) limits: ImportLimits,
    pub(crate) scratch: &'a Path,
    /// How long Docker may neither take a piece nor say a word.
    pub(crate) stall: Duration,
}

/// How far it is, in halves of the archive's length: looked at, and taken by Docker.
struct Progress {
    length: u64,
    done: AtomicU64,
    /// Of Docker: pieces taken and words said.
    signs: AtomicU64,
}

impl Progress {
    fn set(&self, begin: u64, part: u64, of: u64) {
        let part = (part as f64 * self.length as f64 / of.max(1) as f64) as u64;
        self.done.store((begin + part).min(2 * self.length), Ordering::Relaxed);
    }

    fn sign(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> ImportProgress {
        let bytes_done = self.done.load(Ordering::Relaxed);
        ImportProgress { bytes_done, bytes_total: 2 * self.length }
    }
}

pub(crate) async fn import(
    client: &Client,
    name: &ImageName,
    path: &Path,
    importing: &Importing<'_>,
    tell: &(dyn Fn(ImportProgress) + Send + Sync),
) -> Result<(), EngineError> {
    let unopened = |error: std::io::Error| {
        EngineError::BadImage(format!("{} cannot be opened: {error}", path.display()))
    };
    let length = std::fs::metadata(path).map_err(unopened)?.len();
    let (done, signs) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress = Arc::new(Progress { length, done, signs });
    let checking = check(client, path.to_owned(), importing, Arc::clone(&progress));
    let checked = watch(checking, &progress, None, tell).await?;
    let before = ids(client).await?;
    let came = Mutex::new(checked.plan.digest.as_ref().map(|digest| format!("sha256:{digest}")));
    let putting = put(client, name, Arc::new(checked), Arc::clone(&progress), &came);
    let put = watch(putting, &progress, Some((client, importing.stall)), tell).await;
    if let Err(error) = put {
        // Also what it was given up with.
        let came = came.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = came.filter(|id| !before.contains(id)) {
            remove(client, &id).await;
        }
        return Err(error);
    }
    progress.set(length, 1, 1);
    tell(progress.now());
    Ok(())
}

/// Tells how far it is, and gives up when Docker shows no sign of life.
async fn watch<T>(
    work: impl Future<Output = Result<T, EngineError>>,
    progress: &Progress,
    stall: Option<(&Client, Duration)>,
    tell: &(dyn Fn(ImportProgress) + Send + Sync),
) -> Result<T, EngineError> {
    tokio::pin!(work);
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let mut last = (progress.signs.load(Ordering::Relaxed), Instant::now());
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => tell(progress.now()),
        }
        let signs = progress.signs.load(Ordering::Relaxed);
        if signs != last.0 {
            last = (signs, Instant::now());
        }
        if let Some((client, stall)) = stall
            && last.1.elapsed() > stall
        {
            return Err(EngineError::Unavailable(format!(
                "Docker at {} took nothing of the image and said nothing for {} s; {SEE_LOG}",
                client.found.address,
                stall.as_secs_f64()
            )));
        }
    }
}

async fn check(
    client: &Client,
    path: PathBuf,
    importing: &Importing<'_>,
    progress: Arc<Progress>,
) -> Result<Checked, EngineError> {
    let (machine, limits) = (client.machine.clone(), importing.limits);
    let scratch = importing.scratch.to_owned();
    let checking = tokio::task::spawn_blocking(move || {
        let rules = Rules { machine: &machine, limits, scratch: &scratch };
        Checked::open(&path, &rules, &|looked, of| progress.set(0, looked, of))
    });
    checking.await.map_err(|error| EngineError::Internal(error.to_string()))?
}

/// Sends it, and names it once it is there. What came without being named is the caller's to
/// remove, who may stop waiting for this at any time.
async fn put(
    client: &Client,
    name: &ImageName,
    checked: Arc<Checked>,
    progress: Arc<Progress>,
    came: &Mutex<Option<String>>,
) -> Result<(), EngineError> {
    let id = match &checked.plan.digest {
        Some(_) => load(client, &checked, &progress).await?,
        None => import_root(client, &checked, &progress).await?,
    };
    *came.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
    tag(client, &id, name).await
}

async fn ids(client: &Client) -> Result<HashSet<String>, EngineError> {
    let options = ListImagesOptionsBuilder::default().all(true).build();
    let listed = client.api().list_images(Some(options)).await;
    let listed = listed.map_err(client.failed("list the images"))?;
    Ok(listed.into_iter().map(|image| image.id).collect())
}

async fn tag(client: &Client, id: &str, name: &ImageName) -> Result<(), EngineError> {
    let (repo, tag) = reference(name);
    let options = TagImageOptionsBuilder::default().repo(repo).tag(tag).build();
    let tagged = client.api().tag_image(id, Some(options)).await;
    tagged.map_err(client.failed("name an image"))
}

async fn remove(client: &Client, id: &str) {
    let options = RemoveImageOptionsBuilder::default().build();
    if let Err(error) = client.api().remove_image(id, Some(options), None).await {
        // Most often because it never came.
        tracing::debug!(id, %error, "an image without a name was not removed");
    }
}

/// What the engine cannot read is the archive's fault; that it is full or gone is not.
fn bad(error: EngineError) -> EngineError {
    match error {
        EngineError::Internal(text) => EngineError::BadImage(text),
        other => other,
    }
}

fn reference(name: &ImageName) -> (&str, &str) {
    let (repo, tag) = name.as_str().rsplit_once(':').unwrap_or((name.as_str(), "latest"));
    // The colon was a port's.
    if tag.contains('/') { (name.as_str(), "latest") } else { (repo, tag) }
}

async fn import_root(
    client: &Client,
    checked: &Arc<Checked>,
    progress: &Arc<Progress>,
) -> Result<String, EngineError> {
    let options = CreateImageOptionsBuilder::default().from_src("-").build();
    let api = client.patient();
    let body = bollard::body_try_stream(pieces(Arc::clone(checked), taken(checked, progress)));
    let mut told = api.create_image(Some(options), Some(body), None);
    let failed = |error| bad(client.failed("import an image")(error));
    let mut id = None;
    while let Some(line) = told.try_next().await.map_err(failed)? {
        progress.sign();
        id = line.status.filter(|status| status.starts_with("sha256:")).or(id);
    }
    id.ok_or_else(|| EngineError::Internal("Docker did not say what it imported".to_owned()))
}

async fn load(
    client: &Client,
    checked: &Arc<Checked>,
    progress: &Arc<Progress>,
) -> Result<String, EngineError> {
    // With its progress, which is a sign of life.
    let options = ImportImageOptionsBuilder::default().quiet(false).build();
    let api = client.patient();
    let body = bollard::body_try_stream(pieces(Arc::clone(checked), taken(checked, progress)));
    let mut told = Box::pin(api.import_image(options, body, None));
    let failed = |error| bad(client.failed("load an image")(error));
    let mut loaded = None;
    while let Some(line) = told.next().await {
        progress.sign();
        let line = line.map_err(failed)?;
        loaded = line.stream.as_deref().and_then(loaded_id).map(str::to_owned).or(loaded);
    }
    loaded.ok_or_else(|| EngineError::BadImage("Docker found no image in it".to_owned()))
}

/// For every piece that Docker took.
fn taken(checked: &Arc<Checked>, progress: &Arc<Progress>) -> impl Fn(u64) + Send + 'static {
    let of = checked.plan.layers.iter().map(|(member, _)| member.size).sum::<u64>();
    let (progress, sent) = (Arc::clone(progress), AtomicU64::new(0));
    move |bytes| {
        let sent = sent.fetch_add(bytes, Ordering::Relaxed) + bytes;
        progress.set(progress.length, sent, of);
        progress.sign();
    }
}

fn loaded_id(line: &str) -> Option<&str> {
    line.trim().strip_prefix("Loaded image ID: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_loaded_is_read_from_the_engine_s_words() {
        assert_eq!(loaded_id("Loaded image ID: sha256:ab\n"), Some("sha256:ab"));
        assert_eq!(loaded_id("Loading layer"), None);
    }

    #[test]
    fn a_name_is_a_repository_and_a_tag() {
        assert_eq!(reference(&"a/b".parse().unwrap()), ("a/b", "latest"));
        assert_eq!(reference(&"a/b:1".parse().unwrap()), ("a/b", "1"));
        let registry: ImageName = "localhost:5000/a/b".parse().unwrap();
        assert_eq!(reference(&registry), ("localhost:5000/a/b", "latest"));
    }
}
