//! `sandbank rm`: removes sandboxes with everything in them.

use clap::Args;
use serde_json::json;

use crate::client::{Client, description};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank rm sbx7 chat:1
  sandbank rm --all

With no server it removes what `sandbank run --keep` or a killed `sandbank run` left here.")]
pub(crate) struct RmArgs {
    /// Ids, unique beginnings of ids, or keys
    pub(crate) sandboxes: Vec<String>,
    /// Every sandbox
    #[arg(long, conflicts_with = "sandboxes")]
    pub(crate) all: bool,
}

pub(crate) async fn run(context: &Context, args: RmArgs) -> Result<u8, Failure> {
    if !args.all && args.sandboxes.is_empty() {
        return Err(Failure::usage("no sandbox is named")
            .hint("`sandbank ps` lists them, `sandbank rm --all` removes every one"));
    }
    let connection = Connection::open(context, Reach::OrLeftBehind).await?;
    let removed = remove(context, &connection.client, &args).await;
    connection.close().await;
    removed.map(|()| 0)
}

async fn remove(context: &Context, client: &Client, args: &RmArgs) -> Result<(), Failure> {
    let mut ids: Vec<String> = Vec::new();
    if args.all {
        ids.extend(client.sandboxes().await?.iter().map(|value| description(value).id));
    }
    for name in &args.sandboxes {
        let id = client.resolve(name).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in &ids {
        client.remove_sandbox(id).await?;
        if !context.ui.json {
            context.ui.line(id)?;
        }
    }
    if context.ui.json {
        context.ui.document(&json!({ "removed": ids }))?;
    }
    Ok(())
}
