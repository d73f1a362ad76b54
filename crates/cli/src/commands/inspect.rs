//! `sandbank inspect`: everything known about one sandbox, alive or dead.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Client, CommandStatus, description};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::{Ui, text};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank inspect sbx7
  sandbank inspect sbx7 --json | jq .stats

Of a sandbox that has ended it shows the post-mortem: why, what it used, what ran last.")]
pub(crate) struct InspectArgs {
    /// Id, unique beginning of an id, or key
    pub(crate) sandbox: String,
}

pub(crate) async fn run(context: &Context, args: InspectArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::OrLeftBehind).await?;
    let shown = show(context, &connection.client, &args.sandbox).await;
    connection.close().await;
    shown
}

async fn show(context: &Context, client: &Client, name: &str) -> Result<u8, Failure> {
    let id = client.resolve(name).await?;
    let sandbox = client.sandbox(&id).await;
    let over = match &sandbox {
        Ok(value) => matches!(description(value).state.as_str(), "gone" | "failed"),
        Err(error) => matches!(error.status(), Some(404 | 410)),
    };
    if over && let Ok(post_mortem) = client.post_mortem(&id).await {
        return dead(&context.ui, &post_mortem);
    }
    let sandbox = sandbox?;
    // A sandbox that is paused or just ending has no stats and no commands to tell.
    let stats = client.sandbox_stats(&id).await.ok();
    let commands = client.commands(&id).await.ok();
    if context.ui.json {
        let all = json!({ "sandbox": sandbox, "stats": stats, "commands": commands });
        context.ui.document(&all)?;
    } else {
        alive(&context.ui, &sandbox, stats.as_ref(), &commands.unwrap_or_default())?;
    }
    Ok(0)
}

fn alive(ui: &Ui, value: &Value, stats: Option<&Value>, commands: &[Value]) -> Result<(), Failure> {
    let sandbox = description(value);
    let ports: Vec<String> = sandbox.ports.iter().map(u16::to_string).collect();
    let limits = &sandbox.limits;
    let mut rows = vec![
        ("id", sandbox.id.clone()),
        ("key", sandbox.key.clone()),
        ("state", sandbox.state.clone()),
        ("engine", sandbox.engine.clone()),
        ("image", sandbox.image.clone()),
        ("network", sandbox.network.clone()),
        ("workspace", sandbox.workspace.clone().unwrap_or_else(|| "its own".to_owned())),
        ("cpus", format!("{}", limits.cpu_millis as f64 / 1000.0)),
        ("memory", text::bytes(limits.memory_bytes)),
        ("processes", limits.pids.to_string()),
        ("disk", limits.disk_bytes.map_or("no quota".to_owned(), text::bytes)),
        ("ports", if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }),
        ("age", text::since(sandbox.created_at_ms)),
        (
            "idle end",
            if sandbox.busy { "busy".to_owned() } else { text::until(sandbox.expires_at_ms) },
        ),
        ("latest end", text::until(sandbox.ends_at_ms)),
    ];
    if let Some(stats) = stats {
        let count = |name: &str| stats[name].as_u64().unwrap_or_default();
        rows.push(("memory used", text::bytes(count("memoryBytes"))));
        rows.push(("memory peak", text::bytes(count("memoryPeakBytes"))));
        rows.push(("disk used", text::bytes(count("diskBytes"))));
        rows.push(("running", format!("{} processes", count("pids"))));
    }
    print_rows(ui, &rows)?;
    print_commands(ui, commands)
}

fn dead(ui: &Ui, post_mortem: &Value) -> Result<u8, Failure> {
    if ui.json {
        ui.document(&json!({ "postMortem": post_mortem }))?;
        return Ok(0);
    }
    let field = |name: &str| post_mortem[name].as_str().unwrap_or("-").to_owned();
    let moment = |name: &str| text::since(post_mortem[name].as_u64().unwrap_or_default());
    print_rows(
        ui,
        &[
            ("id", field("id")),
            ("key", field("key")),
            ("state", "ended".to_owned()),
            ("cause", field("reason")),
            ("made", format!("{} ago", moment("createdAtMs"))),
            ("ended", format!("{} ago", moment("endedAtMs"))),
            ("memory peak", text::bytes(post_mortem["memoryPeakBytes"].as_u64().unwrap_or(0))),
        ],
    )?;
    let commands = post_mortem["lastCommands"].as_array().cloned().unwrap_or_default();
    print_commands(ui, &commands)?;
    let last = field("lastOutput");
    if last != "-" && !last.is_empty() {
        ui.line("\nlast output:")?;
        for line in last.lines() {
            ui.line(&format!("  {}", text::printable(line)))?;
        }
    }
    Ok(0)
}

fn print_rows(ui: &Ui, rows: &[(&str, String)]) -> Result<(), Failure> {
    for (name, value) in rows {
        ui.line(&format!("{} {}", ui.bold(&format!("{name:<12}")), text::printable(value)))?;
    }
    Ok(())
}

fn print_commands(ui: &Ui, commands: &[Value]) -> Result<(), Failure> {
    if !commands.is_empty() {
        ui.line("\ncommands:")?;
    }
    for value in commands {
        let command = CommandStatus::deserialize(value).unwrap_or_default();
        let standing = match command.ending.as_ref().map(|ending| ending.exit_code()) {
            None => "running".to_owned(),
            Some(None) => "lost".to_owned(),
            Some(Some(code)) => format!("ended {code}"),
        };
        let line = format!(
            "  {:<24} {standing:<10} {:>5} ago  {}",
            command.command_id,
            text::since(command.started_at_ms),
            command.argv.join(" "),
        );
        ui.line(&text::printable(&line))?;
    }
    Ok(())
}
