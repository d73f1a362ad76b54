//! `sandbank workspace`: kept workspaces.

use std::io::{BufRead, IsTerminal};

use clap::{Args, Subcommand};
use sandbank_engine::WorkspaceId;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Client, Workspace, Workspaces};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::ui::{Table, text};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank run --workspace project -- sh -c 'date >> visits'   makes it, if it is not there
  sandbank workspace ls
  sandbank workspace rm project

A kept workspace outlives the sandboxes that have it; several may have it at once. With no server,
those that `sandbank run --workspace` left here are looked after.")]
pub(crate) struct WorkspaceArgs {
    #[command(subcommand)]
    pub(crate) action: WorkspaceAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceAction {
    /// List the kept workspaces
    Ls,
    /// Remove kept workspaces that no sandbox has, with all that is in them
    Rm {
        #[arg(required = true)]
        names: Vec<WorkspaceId>,
        /// Do not ask, on a terminal either
        #[arg(short, long)]
        yes: bool,
    },
}

pub(crate) async fn run(context: &Context, args: WorkspaceArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::OrLeftBehind).await?;
    let done = match args.action {
        WorkspaceAction::Ls => list(context, &connection.client).await,
        WorkspaceAction::Rm { names, yes } => {
            remove(context, &connection.client, &names, yes).await
        }
    };
    connection.close().await;
    done.map(|()| 0)
}

async fn list(context: &Context, client: &Client) -> Result<(), Failure> {
    let Workspaces { workspaces, unavailable } = client.workspaces().await?;
    let ui = &context.ui;
    for engine in &unavailable {
        ui.note(&format!("the engine {engine} does not answer; its workspaces are not listed"));
    }
    if ui.json {
        return ui.document(&workspaces);
    }
    if workspaces.is_empty() && ui.stdout_is_terminal {
        ui.note("no kept workspaces; `sandbank run --workspace NAME -- sh` makes one");
        return Ok(());
    }
    let mut table = Table::new(&["NAME", "SIZE", "QUOTA", "SANDBOXES"]);
    for value in &workspaces {
        let workspace = Workspace::deserialize(value).unwrap_or_default();
        let users = match workspace.in_use_by.is_empty() {
            true => "-".to_owned(),
            false => workspace.in_use_by.join(" "),
        };
        table.row([
            (workspace.id, None),
            (text::bytes(workspace.bytes), None),
            (workspace.quota_bytes.map_or_else(|| "-".to_owned(), text::bytes), None),
            (users, None),
        ]);
    }
    table.print(ui)
}

async fn remove(
    context: &Context,
    client: &Client,
    names: &[WorkspaceId],
    yes: bool,
) -> Result<(), Failure> {
    let Workspaces { workspaces: known, unavailable } = client.workspaces().await?;
    let known: Vec<_> =
        known.iter().map(|value| Workspace::deserialize(value).unwrap_or_default()).collect();
    let mut removed: Vec<&str> = Vec::new();
    for name in names.iter().map(WorkspaceId::as_str) {
        let Some(workspace) = known.iter().find(|workspace| workspace.id == name) else {
            if let Some(engine) = unavailable.first() {
                let text = format!("the engine {engine} does not answer, and may have {name:?}");
                return Err(Failure::new(Exit::Temporary, text).hint("try again when it does"));
            }
            return Err(Failure::new(Exit::Refused, format!("there is no workspace {name:?}"))
                .hint("`sandbank workspace ls` lists them"));
        };
        if removed.contains(&name) || !yes && !confirmed(context, workspace)? {
            continue;
        }
        client.remove_workspace(name).await?;
        removed.push(name);
        if !context.ui.json {
            context.ui.line(name)?;
        }
    }
    if context.ui.json {
        context.ui.document(&json!({ "removed": removed }))?;
    }
    Ok(())
}

/// Nobody can give back what is in it. A script has nobody to ask, and names what it means.
fn confirmed(context: &Context, workspace: &Workspace) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !context.ui.stderr_is_terminal || workspace.bytes == 0 {
        return Ok(true);
    }
    let (name, size) = (&workspace.id, text::bytes(workspace.bytes));
    context.ui.note(&format!("remove {name} with {size} for good? [y/N]"));
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(|error| {
        Failure::new(Exit::Usage, format!("no answer: {error}")).hint("--yes does not ask")
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
