//! `sandbank image`: what sandboxes' root file systems are made of.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sandbank_engine::ImageName;
use serde::Deserialize;
use serde_json::json;

use crate::client::Image;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::ui::{Progress, Table, text};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  docker save node:24 | zstd > node24.tar.zst; sandbank image import node24 node24.tar.zst
  sandbank run --image node24 -- node --version
  sandbank image ls

An archive is a root file system as tar, the output of `docker save`, or an OCI layout; plain,
gzip or zstd. The image `host` is always there: this machine's /usr, read-only.")]
pub(crate) struct ImageArgs {
    #[command(subcommand)]
    pub(crate) action: ImageAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImageAction {
    /// List the images
    Ls,
    /// Read an image from an archive on the server's machine
    Import {
        /// What to call it: a-z 0-9 . _ - with an optional /path and :tag
        name: ImageName,
        /// The archive
        archive: PathBuf,
    },
    /// Remove images that no sandbox uses
    Rm {
        #[arg(required = true)]
        names: Vec<ImageName>,
    },
}

pub(crate) async fn run(context: &Context, args: ImageArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::OrOwn { keep: true }).await?;
    let done = match args.action {
        ImageAction::Ls => list(context, &connection).await,
        ImageAction::Import { name, archive } => {
            import(context, &connection, &name, &archive).await
        }
        ImageAction::Rm { names } => remove(context, &connection, &names).await,
    };
    connection.close().await;
    done.map(|()| 0)
}

async fn list(context: &Context, connection: &Connection) -> Result<(), Failure> {
    let images = connection.client.images().await?;
    if context.ui.json {
        return context.ui.document(&images);
    }
    let mut table = Table::new(&["NAME", "SIZE", "LAYERS", "IMPORTED", "DIGEST"]);
    for value in &images {
        let image = Image::deserialize(value).unwrap_or_default();
        let size = if image.digest.is_some() { text::bytes(image.size_bytes) } else { "-".into() };
        let imported = match image.imported_at_ms {
            Some(moment) => format!("{} ago", text::since(moment)),
            None => "-".to_owned(),
        };
        let digest = image.digest.unwrap_or_else(|| "this machine's /usr".to_owned());
        table.row([
            (image.name, None),
            (size, None),
            (image.layers.to_string(), None),
            (imported, None),
            (digest.chars().take(19).collect(), None),
        ]);
    }
    table.print(&context.ui)
}

async fn import(
    context: &Context,
    connection: &Connection,
    name: &ImageName,
    archive: &std::path::Path,
) -> Result<(), Failure> {
    let path = archive.canonicalize().map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read the archive {}: {error}", archive.display()))
            .hint("name a file that exists on this machine")
    })?;
    let path = path.to_str().ok_or_else(|| Failure::usage("the archive's path is not UTF-8"))?;
    let progress = Progress::bytes(&context.ui, &format!("importing {name}"), 0);
    let last = connection
        .client
        .import_image(name.as_str(), path, |step| progress.set(step.bytes_done, step.bytes_total))
        .await;
    progress.done();
    let last = last?.unwrap_or_default();
    if let Some(error) = last.error {
        let failure = Failure::new(Exit::Refused, text::printable(&error));
        return Err(match last.hint {
            Some(hint) => failure.hint(text::printable(&hint)),
            None => failure,
        });
    }
    let image = last.image.ok_or_else(|| {
        Failure::new(Exit::Unreachable, "the server went away during the import")
            .hint("look at its log, then import again")
    })?;
    if context.ui.json {
        return context.ui.document(&image);
    }
    context.ui.line(&format!("imported {name}; try `sandbank run --image {name} -- sh`"))
}

async fn remove(
    context: &Context,
    connection: &Connection,
    names: &[ImageName],
) -> Result<(), Failure> {
    for name in names {
        connection.client.remove_image(name.as_str()).await?;
        if !context.ui.json {
            context.ui.line(name.as_str())?;
        }
    }
    if context.ui.json {
        context.ui.document(&json!({ "removed": names }))?;
    }
    Ok(())
}
