//! `sandbank ps`: the sandboxes there are.

use clap::Args;
use clap::builder::styling::AnsiColor;

use crate::client::{Client, Sandbox, description};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::{Table, text};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank ps
  sandbank ps chat:1
  sandbank rm $(sandbank ps -q)
  sandbank ps --json | jq '.[].key'")]
pub(crate) struct PsArgs {
    /// Only these: ids, unique beginnings of ids, or keys
    pub(crate) sandboxes: Vec<String>,
    /// Print ids only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

pub(crate) async fn run(context: &Context, args: PsArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::OrLeftBehind).await?;
    let listed = list(context, &connection.client, &args).await;
    connection.close().await;
    listed.map(|()| 0)
}

async fn list(context: &Context, client: &Client, args: &PsArgs) -> Result<(), Failure> {
    let mut values = client.sandboxes().await?;
    if !args.sandboxes.is_empty() {
        let mut wanted = Vec::new();
        for name in &args.sandboxes {
            wanted.push(client.resolve(name).await?);
        }
        values.retain(|value| wanted.contains(&description(value).id));
    }
    let ui = &context.ui;
    if ui.json {
        ui.document(&values)?;
    } else if args.quiet {
        for value in &values {
            ui.line(&description(value).id)?;
        }
    } else if values.is_empty() && ui.stdout_is_terminal {
        ui.note("no sandboxes; `sandbank run -- echo hello` makes one");
    } else {
        table(values.iter().map(description).collect()).print(ui)?;
    }
    Ok(())
}

fn table(sandboxes: Vec<Sandbox>) -> Table {
    let header = [
        "ID", "KEY", "STATE", "ENGINE", "IMAGE", "NETWORK", "MEMORY", "COMMANDS", "AGE", "IDLE END",
    ];
    let mut table = Table::new(&header).one_line();
    // Of interest where they differ.
    if sandboxes.iter().all(|sandbox| sandbox.engine == sandboxes[0].engine) {
        table = table.without("ENGINE");
    }
    for sandbox in sandboxes {
        let idle_end =
            if sandbox.busy { "busy".to_owned() } else { text::until(sandbox.expires_at_ms) };
        table.row([
            (sandbox.id.clone(), None),
            (sandbox.key.clone(), None),
            (state(&sandbox), Some(state_colour(&sandbox.state))),
            (sandbox.engine.clone(), None),
            (sandbox.image.clone(), None),
            (sandbox.network.clone(), None),
            (text::bytes(sandbox.limits.memory_bytes), None),
            (sandbox.commands_running.to_string(), None),
            (text::since(sandbox.created_at_ms), None),
            (idle_end, None),
        ]);
    }
    table
}

fn state(sandbox: &Sandbox) -> String {
    match &sandbox.reason {
        Some(reason) if !reason.is_empty() => format!("{}: {reason}", sandbox.state),
        _ => sandbox.state.clone(),
    }
}

pub(crate) fn state_colour(state: &str) -> AnsiColor {
    match state {
        "running" => AnsiColor::Green,
        "failed" | "gone" => AnsiColor::Red,
        _ => AnsiColor::Yellow,
    }
}
