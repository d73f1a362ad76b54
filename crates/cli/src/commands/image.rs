//! `sandbank image`: what sandboxes' root file systems are made of.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use sandbank_engine::ImageName;
use sandbank_registry::{Credentials, DockerConfig, InvalidReference, Reference};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Cleared, ClientError, Image, ImportStep, Listing, is_loopback};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::limits::HEALTH_TIMEOUT;
use crate::ui::{Progress, Table, text};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank image pull node:24; sandbank run --image node:24 -- node --version
  sandbank image pull registry.lan:5000/team/tools:3 --name tools
  docker save node:24 | zstd > node24.tar.zst; sandbank image import node24 node24.tar.zst
  sandbank run --image node24 -- node --version
  sandbank image ls

An archive is a root file system as tar, the output of `docker save`, or an OCI layout; plain,
gzip or zstd. The image `host` is always there: this machine's /usr, read-only.")]
pub(crate) struct ImageArgs {
    /// Whose images, where the server has several engines [default: the default one's]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) engine: Option<String>,
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
    /// Take an image from a registry, with the credentials of `docker login`
    Pull {
        /// [registry[:port]/]name[:tag] or …@sha256:<digest>
        reference: Written,
        /// What to call it here [default: the reference without its digest]
        #[arg(long, value_name = "NAME")]
        name: Option<ImageName>,
    },
    /// Remove layers that no image and no sandbox is made of
    Prune,
    /// Remove images that no sandbox uses
    Rm {
        #[arg(required = true)]
        names: Vec<ImageName>,
    },
}

/// A reference with the words that were used for it: they name the image here.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    text: String,
    meant: Reference,
}

impl FromStr for Written {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        Ok(Self { text: text.to_owned(), meant: text.parse()? })
    }
}

pub(crate) async fn run(context: &Context, args: ImageArgs) -> Result<u8, Failure> {
    let engine = args.engine.as_deref();
    let connection = Connection::open(context, Reach::OrOwn { keep: true, engine }).await?;
    let done = match args.action {
        ImageAction::Ls => list(context, &connection, engine).await,
        ImageAction::Import { name, archive } => {
            import(context, &connection, &name, &archive, engine).await
        }
        ImageAction::Pull { reference, name } => {
            pull(context, &connection, &reference, name.as_ref(), engine).await
        }
        ImageAction::Prune => prune(context, &connection, engine).await,
        ImageAction::Rm { names } => remove(context, &connection, &names, engine).await,
    };
    connection.close().await;
    done.map(|()| 0)
}

/// A slip must not look like an engine without images. Older servers do not say what they have.
async fn refuse_unknown(connection: &Connection, engine: &str) -> Result<(), Failure> {
    let health = match connection.client.health(HEALTH_TIMEOUT).await {
        // An engine that is away does not say which others there are.
        Err(ClientError::Refused(_)) => return Ok(()),
        health => health?,
    };
    let Ok(known) = Vec::<String>::deserialize(&health["engines"]) else { return Ok(()) };
    if known.iter().any(|name| name == engine) {
        return Ok(());
    }
    let message = format!("the engine {} is not configured here", text::printable(engine));
    let known = text::printable(&known.join(", "));
    Err(Failure::usage(message).hint(format!("name one of: {known}; or leave --engine out")))
}

/// Of all engines, unless one is named.
async fn list(
    context: &Context,
    connection: &Connection,
    engine: Option<&str>,
) -> Result<(), Failure> {
    if let Some(engine) = engine {
        refuse_unknown(connection, engine).await?;
    }
    let Listing { mut images, mut unavailable } = connection.client.images().await?;
    images.retain(|image| engine.is_none_or(|engine| image["engine"] == engine));
    unavailable.retain(|name| engine.is_none_or(|engine| name == engine));
    for name in unavailable {
        let name = text::printable(&name);
        // Also beside JSON, which is the list of those that are known.
        context.ui.to_stderr(&format!(
            "sandbank: the engine {name} does not answer, so its images are not listed"
        ));
    }
    if context.ui.json {
        return context.ui.document(&images);
    }
    let images: Vec<_> =
        images.iter().map(|value| Image::deserialize(value).unwrap_or_default()).collect();
    let mut table = Table::new(&["NAME", "ENGINE", "SIZE", "LAYERS", "IMPORTED", "DIGEST"]);
    if images.iter().all(|image| image.engine == images[0].engine) {
        table = table.without("ENGINE");
    }
    for image in images {
        let size = if image.digest.is_some() { text::bytes(image.size_bytes) } else { "-".into() };
        let imported = match image.imported_at_ms {
            Some(moment) => format!("{} ago", text::since(moment)),
            None => "-".to_owned(),
        };
        let digest = image.digest.unwrap_or_else(|| "this machine's /usr".to_owned());
        table.row([
            (image.name, None),
            (image.engine, None),
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
    engine: Option<&str>,
) -> Result<(), Failure> {
    let path = archive.canonicalize().map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read the archive {}: {error}", archive.display()))
            .hint("name a file that exists on this machine")
    })?;
    let path = path.to_str().ok_or_else(|| Failure::usage("the archive's path is not UTF-8"))?;
    let progress = Progress::bytes(&context.ui, &format!("importing {name}"), 0);
    let last = connection
        .client
        .import_image(name.as_str(), path, engine, |step| {
            progress.set(step.bytes_done, step.bytes_total);
        })
        .await;
    progress.done();
    let image = arrived(last?, "import")?;
    if context.ui.json {
        return context.ui.document(&image);
    }
    context.ui.line(&format!("imported {name}; try `sandbank run --image {name} -- sh`"))
}

/// The image that the last line is about, or why there is none.
fn arrived(last: Option<ImportStep>, verb: &str) -> Result<Value, Failure> {
    let last = last.unwrap_or_default();
    if let Some(error) = last.error {
        let failure = Failure::new(Exit::Refused, text::printable(&error));
        return Err(match last.hint {
            Some(hint) => failure.hint(text::printable(&hint)),
            None => failure,
        });
    }
    last.image.ok_or_else(|| {
        Failure::new(Exit::Unreachable, format!("the server went away during the {verb}"))
            .hint(format!("look at its log, then {verb} again"))
    })
}

async fn pull(
    context: &Context,
    connection: &Connection,
    reference: &Written,
    name: Option<&ImageName>,
    engine: Option<&str>,
) -> Result<(), Failure> {
    let written = reference.text.as_str();
    let mut credentials = credentials(&reference.meant).await?;
    // The way there is in clear.
    let is_near = connection.client.url().parse().is_ok_and(|url| is_loopback(&url));
    if !is_near && credentials.take().is_some() {
        context.ui.note(
            "the credentials of `docker login` are not sent to a server on another machine; pull there, \
             or import an archive",
        );
    }
    let progress = Progress::bytes(&context.ui, &format!("pulling {written}"), 0);
    let mut interrupts = Interrupts::listen()?;
    let name = name.map(ImageName::as_str);
    let credentials = credentials.as_ref();
    let pulling = connection.client.pull_image(name, written, credentials, engine, |step| {
        progress.set(step.bytes_done, step.bytes_total);
    });
    let last = tokio::select! {
        last = pulling => last,
        // Dropping the request is what tells the server.
        _ = interrupts.next() => {
            progress.done();
            return Err(Failure::new(Exit::Interrupted, "the pull was cancelled; nothing of it is kept"));
        }
    };
    progress.done();
    let image = arrived(last?, "pull")?;
    if context.ui.json {
        return context.ui.document(&image);
    }
    let name = Image::deserialize(&image).unwrap_or_default().name;
    context.ui.line(&format!("pulled {name}; try `sandbank run --image {name} -- sh`"))
}

/// Those of whoever types: the server has none of its own.
async fn credentials(reference: &Reference) -> Result<Option<Credentials>, Failure> {
    let found = match DockerConfig::of_this_user() {
        Ok(config) => config.credentials(reference).await,
        Err(error) => Err(error),
    };
    let registry = reference.registry();
    found.map_err(|error| {
        Failure::usage(text::printable(&error.to_string())).hint(format!(
            "repair it, log in again with `docker login {registry}`, or set DOCKER_CONFIG to an empty directory"
        ))
    })
}

async fn prune(
    context: &Context,
    connection: &Connection,
    engine: Option<&str>,
) -> Result<(), Failure> {
    let cleared = connection.client.prune_images(engine).await?;
    if context.ui.json {
        return context.ui.document(&cleared);
    }
    context.ui.line(&freed(&cleared))
}

fn freed(cleared: &Cleared) -> String {
    let (layers, bytes) = (cleared.freed_layers, text::bytes(cleared.freed_bytes));
    format!("freed {bytes} of {layers} layers")
}

async fn remove(
    context: &Context,
    connection: &Connection,
    names: &[ImageName],
    engine: Option<&str>,
) -> Result<(), Failure> {
    let mut all = Cleared::default();
    for name in names {
        let cleared = connection.client.remove_image(name.as_str(), engine).await?;
        all.freed_layers += cleared.freed_layers;
        all.freed_bytes += cleared.freed_bytes;
        if !context.ui.json {
            context.ui.line(name.as_str())?;
        }
    }
    if context.ui.json {
        let Cleared { freed_layers, freed_bytes } = all;
        context.ui.document(
            &json!({ "removed": names, "freedLayers": freed_layers, "freedBytes": freed_bytes }),
        )?;
    } else {
        context.ui.note(&freed(&all));
    }
    Ok(())
}
