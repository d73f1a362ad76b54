//! `sandbank logs`: what a command printed, and prints.

use clap::Args;

use crate::attach::write_record;
use crate::client::{Client, CommandStatus, Follow, Record};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::{Exit, Failure};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank logs sbx7              the newest command's output so far
  sandbank logs sbx7 c-1f2e -f    one command's, until it ends
  sandbank logs sbx7 -f --after 120

stdout and stderr stay apart. With -f a lost connection or a restarted server is waited for, and
the output goes on where it stopped.")]
pub(crate) struct LogsArgs {
    /// Id, unique beginning of an id, or key
    pub(crate) sandbox: String,
    /// The command's id or the unique beginning of one; the newest when left out
    pub(crate) command: Option<String>,
    /// Stay until the command ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what came after this record number; `--json` shows the numbers
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
}

pub(crate) async fn run(context: &Context, args: LogsArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::Running).await?;
    let client = &connection.client;
    let sandbox = client.resolve(&args.sandbox).await?;
    let command = match args.command {
        Some(command) => client.resolve_command(&sandbox, &command).await?,
        None => newest(client, &sandbox).await?,
    };
    let mut follow = Follow::new(client, &sandbox, &command, args.after, args.follow);
    loop {
        let next = tokio::select! {
            next = follow.next() => next.map_err(|error| error.about(&sandbox))?,
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted as u8),
        };
        match next {
            Some(record @ Record::Ended { .. }) => {
                write_record(&context.ui, &record)?;
                return Ok(0);
            }
            Some(record) => write_record(&context.ui, &record)?,
            None => return Ok(0),
        }
    }
}

async fn newest(client: &Client, sandbox: &str) -> Result<String, Failure> {
    use serde::Deserialize;
    let commands = client.commands(sandbox).await.map_err(|error| error.about(sandbox))?;
    let status = |value| CommandStatus::deserialize(value).unwrap_or_default();
    let newest = commands.iter().map(status).max_by_key(|command| command.started_at_ms);
    newest.map(|command| command.command_id).ok_or_else(|| {
        Failure::new(Exit::Refused, format!("no command has run in {sandbox} yet"))
            .hint(format!("start one with `sandbank exec {sandbox} -- …`"))
    })
}
