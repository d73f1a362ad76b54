//! From an archive to an image of the engine, piece by piece.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::query_parameters::{
    CreateImageOptionsBuilder, ImportImageOptionsBuilder, TagImageOptionsBuilder,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use sandbank_engine::{EngineError, ImageName, ImportProgress};
use tokio::sync::mpsc;

use super::archive::{self, Kind};
use crate::connection::Client;

/// Of the archive, on the way to the engine.
const PIECE_BYTES: usize = 256 << 10;
const PIECES_AHEAD: usize = 4;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) async fn import(
    client: &Client,
    name: &ImageName,
    path: &Path,
    progress: &(dyn Fn(ImportProgress) + Send + Sync),
) -> Result<(), EngineError> {
    let bytes_total = std::fs::metadata(path).map_err(EngineError::io("open the archive"))?.len();
    let (archive, done) = (path.to_owned(), Arc::new(AtomicU64::new(0)));
    let (kind, _) = tokio::task::spawn_blocking(move || archive::kind(&archive))
        .await
        .map_err(|error| EngineError::Internal(error.to_string()))??;
    let pieces = pieces(path.to_owned(), Arc::clone(&done));
    let importing = async {
        match kind {
            Kind::Root => import_root(client, name, pieces).await,
            Kind::Images => load(client, name, pieces).await,
        }
    };
    tokio::pin!(importing);
    let tell =
        || progress(ImportProgress { bytes_done: done.load(Ordering::Relaxed), bytes_total });
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let imported = loop {
        tokio::select! {
            imported = &mut importing => break imported,
            _ = ticks.tick() => tell(),
        }
    };
    tell();
    imported
}

/// What the engine cannot read is the archive's fault; that it is full or gone is not.
fn bad(error: EngineError) -> EngineError {
    match error {
        EngineError::Internal(text) => EngineError::BadImage(text),
        other => other,
    }
}

fn reference(name: &ImageName) -> (&str, &str) {
    name.as_str().rsplit_once(':').unwrap_or((name.as_str(), "latest"))
}

async fn import_root(
    client: &Client,
    name: &ImageName,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<(), EngineError> {
    let (repo, tag) = reference(name);
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(repo).tag(tag).build();
    let body = bollard::body_try_stream(pieces);
    let mut told = client.api().create_image(Some(options), Some(body), None);
    let failed = |error| bad(client.failed("import an image")(error));
    while let Some(line) = told.try_next().await.map_err(failed)? {
        if let Some(detail) = line.error_detail {
            return Err(EngineError::BadImage(detail.message.unwrap_or_default()));
        }
    }
    Ok(())
}

async fn load(
    client: &Client,
    name: &ImageName,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<(), EngineError> {
    let options = ImportImageOptionsBuilder::default().build();
    let body = bollard::body_try_stream(pieces);
    let mut told = Box::pin(client.api().import_image(options, body, None));
    let failed = |error| bad(client.failed("load an image")(error));
    let mut loaded = Vec::new();
    while let Some(line) = told.next().await {
        let line = line.map_err(failed)?;
        loaded.extend(line.stream.as_deref().and_then(loaded_name).map(str::to_owned));
    }
    let [image] = loaded.as_slice() else {
        let text = format!("there are {} images in it, and one is wanted", loaded.len());
        return Err(EngineError::BadImage(text));
    };
    let (repo, tag) = reference(name);
    let options = TagImageOptionsBuilder::default().repo(repo).tag(tag).build();
    let tagged = client.api().tag_image(image, Some(options)).await;
    tagged.map_err(client.failed("name an image"))
}

fn loaded_name(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("Loaded image")?;
    rest.strip_prefix(" ID: ").or_else(|| rest.strip_prefix(": "))
}

/// The archive without compression that an older engine does not know, read by a thread of its own.
fn pieces(
    path: PathBuf,
    done: Arc<AtomicU64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    tokio::task::spawn_blocking(move || {
        let read = || -> io::Result<()> {
            let mut file = File::open(&path)?;
            let compression = archive::compression(&mut file)?;
            let counted = Counted { file, done };
            let mut reader = archive::reader_of(counted, compression)?;
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let length = reader.read(&mut piece)?;
                piece.truncate(length);
                // The engine may have had enough.
                if length == 0 || sender.blocking_send(Ok(piece.into())).is_err() {
                    return Ok(());
                }
            }
        };
        if let Err(error) = read() {
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures_util::stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|piece| (piece, receiver))
    })
}

struct Counted {
    file: File,
    done: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buf)?;
        self.done.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_loaded_is_read_from_the_engine_s_words() {
        assert_eq!(loaded_name("Loaded image: a/b:1\n"), Some("a/b:1"));
        assert_eq!(loaded_name("Loaded image ID: sha256:ab\n"), Some("sha256:ab"));
        assert_eq!(loaded_name("Loading layer"), None);
        assert_eq!(reference(&"a/b".parse().unwrap()), ("a/b", "latest"));
    }
}
