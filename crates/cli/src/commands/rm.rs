//! `sandbank rm`: removes sandboxes with everything in them.

use clap::Args;
use serde_json::json;

use crate::client::description;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank rm sbx7 chat:1
  sandbank rm --all")]
pub(crate) struct RmArgs {
    /// Ids, unique beginnings of ids, or keys
    #[arg(required_unless_present = "all")]
    pub(crate) sandboxes: Vec<String>,
    /// Every sandbox
    #[arg(long, conflicts_with = "sandboxes")]
    pub(crate) all: bool,
}

pub(crate) async fn run(context: &Context, args: RmArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::Running).await?;
    let client = &connection.client;
    let ids = if args.all {
        client.sandboxes().await?.iter().map(|value| description(value).id).collect()
    } else {
        let mut ids = Vec::new();
        for name in &args.sandboxes {
            ids.push(client.resolve(name).await?);
        }
        ids
    };
    for id in &ids {
        client.remove_sandbox(id).await?;
        if !context.ui.json {
            context.ui.line(id)?;
        }
    }
    if context.ui.json {
        context.ui.document(&json!({ "removed": ids }))?;
    }
    Ok(0)
}
