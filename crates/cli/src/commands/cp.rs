//! `sandbank cp`: files and directories into a sandbox and out of it.

use clap::Args;
use serde_json::json;

use crate::client::Client;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::copy::{self, Copied, Place, Remote};
use crate::failure::{Exit, Failure};
use crate::ui::text;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank cp notes.txt sbx7:            into the workspace
  sandbank cp src sbx7:app/src           a directory
  sandbank cp sbx7:dist ./out
  sandbank cp sbx7:report.csv - | head   to standard output
  tar c . | sandbank cp - sbx7:all.tar   from standard input
  sandbank cp chat:1:notes.txt .         by a key that has a colon

A place in a sandbox is SANDBOX:PATH; relative paths are below the workspace. Where a key has colons,
the longest one that there is counts; SANDBOX:./PATH is for paths that have some. Copying onto a
directory copies into it. Files are replaced as a whole or not at all.")]
pub(crate) struct CpArgs {
    /// A local path, SANDBOX:PATH, or - for standard input
    pub(crate) from: String,
    /// A local path, SANDBOX:PATH, or - for standard output
    pub(crate) to: String,
}

pub(crate) async fn run(context: &Context, args: CpArgs) -> Result<u8, Failure> {
    let (from, to) = (Place::parse(&args.from), Place::parse(&args.to));
    let copied = match (&from, &to) {
        (Place::Remote(readings), local) if !local.is_remote() => {
            let connection = Connection::open(context, Reach::Running).await?;
            let (id, path) = find(&connection.client, readings).await?;
            copy::download(&context.ui, &connection.client, &id, path, local).await?
        }
        (local, Place::Remote(readings)) if !local.is_remote() => {
            let connection = Connection::open(context, Reach::Running).await?;
            let (id, path) = find(&connection.client, readings).await?;
            copy::upload(&context.ui, &connection.client, &id, local, path).await?
        }
        (Place::Remote(_), _) => {
            let message = "both places are in sandboxes";
            return Err(Failure::usage(message).hint("copy to this machine first, then on"));
        }
        _ => {
            let message = "neither place is in a sandbox";
            return Err(Failure::usage(message).hint("write one of them as SANDBOX:PATH"));
        }
    };
    report(context, &copied, to == Place::Standard)
}

/// The sandbox and the path, by the longest name that there is.
async fn find<'a>(client: &Client, readings: &'a [Remote]) -> Result<(String, &'a str), Failure> {
    let names: Vec<&str> = readings.iter().map(|reading| reading.sandbox.as_str()).collect();
    let (id, place) = client.resolve_first(&names).await?;
    Ok((id, &readings[place].path))
}

fn report(context: &Context, copied: &Copied, to_stdout: bool) -> Result<u8, Failure> {
    let Copied { files, directories, bytes, skipped } = copied;
    if context.ui.json && !to_stdout {
        context.ui.document(&json!({
            "files": files, "directories": directories, "bytes": bytes, "skipped": skipped,
        }))?;
    }
    if let Some(first) = skipped.first() {
        let count = skipped.len();
        let message = format!("{count} entries were not copied, first {}", text::printable(first));
        return Err(Failure::new(Exit::Refused, message)
            .hint("links that lead elsewhere, devices, sockets and pipes are left out"));
    }
    if context.ui.stderr_is_terminal {
        context.ui.note(&format!("{files} files, {}", text::bytes(*bytes)));
    }
    Ok(0)
}
