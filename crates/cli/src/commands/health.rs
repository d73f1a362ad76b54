//! `sandbank health`: whether the server answers, for whoever watches over it.

use clap::Args;

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::limits::HEALTH_TIMEOUT;
use crate::locate;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank health
  sandbank health && echo it serves
  SANDBANK_URL=http://127.0.0.1:9000 sandbank health --json

Needs no token. Exit codes: 0 it serves, 69 nothing answers, 75 it answers that it cannot serve.")]
pub(crate) struct HealthArgs {}

pub(crate) async fn run(context: &Context, _args: HealthArgs) -> Result<u8, Failure> {
    let url = match &context.url {
        Some(url) => url.clone(),
        None => locate::address(&locate::settings()?),
    };
    let client = Client::new(&url, None)?;
    let health = client.health(HEALTH_TIMEOUT).await?;
    if context.ui.json {
        context.ui.document(&health)?;
    } else {
        let word = |name: &str| health[name].as_str().unwrap_or("unknown").to_owned();
        let (engine, version) = (word("engine"), word("version"));
        context.ui.line(&format!("{url} serves: engine {engine}, version {version}"))?;
    }
    Ok(0)
}
