//! `sandbank config`: what is set, where, and whether it makes sense.

use clap::{Args, Subcommand};
use sandbank_server::config::{self, ConfigFlags, Origin, Sources};
use serde_json::json;

use crate::context::Context;
use crate::daemon::bad_config;
use crate::failure::{Exit, Failure};
use crate::ui::Table;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank config show                       every setting, its value and where it comes from
  sandbank config check && systemctl restart sandbank
  sandbank config example > /etc/sandbank/config.toml")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show every setting with its value and origin
    Show(Box<Flags>),
    /// Print the path of the configuration file
    Path(Box<Flags>),
    /// Say whether the configuration is valid
    Check(Box<Flags>),
    /// Print a file with every setting at its default
    Example,
}

/// The same flags as `sandbank serve`, so that its command line can be tried out here.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) flags: ConfigFlags,
}

pub(crate) fn run(context: &Context, args: ConfigArgs) -> Result<u8, Failure> {
    match args.action {
        ConfigAction::Show(flags) => show(context, &sources(*flags))?,
        ConfigAction::Path(flags) => path(context, &sources(*flags))?,
        ConfigAction::Check(flags) => check(context, &sources(*flags))?,
        ConfigAction::Example => context.ui.bytes(config::example().as_bytes())?,
    }
    Ok(0)
}

fn sources(flags: Flags) -> Sources {
    Sources::of_this_process(flags.flags)
}

fn show(context: &Context, sources: &Sources) -> Result<(), Failure> {
    let rows = config::explain(sources).map_err(|error| bad_config(&error))?;
    let app = config::explain_app(sources).map_err(|error| bad_config(&error))?;
    if context.ui.json {
        let app = app.iter().map(
            |row| json!({ "key": row.key, "value": row.value, "origin": row.origin.to_string() }),
        );
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "key": row.setting.key,
                    "value": row.value.as_ref().map(ToString::to_string),
                    "origin": row.origin.to_string(),
                })
            })
            .chain(app)
            .collect();
        return context.ui.document(&rows);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for row in rows {
        let value = match &row.value {
            Some(value) => value.to_string(),
            None => row.setting.default_text().to_owned(),
        };
        let origin = from(&row.origin);
        table.row([(row.setting.key.to_owned(), None), (value, None), (origin, None)]);
    }
    for row in app {
        let origin = from(&row.origin);
        table.row([(row.key.to_owned(), None), (row.value, None), (origin, None)]);
    }
    table.print(&context.ui)
}

fn from(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::Env(name) => (*name).to_owned(),
        Origin::Flag(flag) => format!("--{flag}"),
        Origin::File { path, .. } | Origin::SandkastenFile { path, .. } => {
            path.display().to_string()
        }
    }
}

fn path(context: &Context, sources: &Sources) -> Result<(), Failure> {
    let path = config::file_path(sources).ok_or_else(|| {
        Failure::new(Exit::Usage, "there is no place for a configuration file: HOME is not set")
            .hint("name one with --config or SANDBANK_CONFIG")
    })?;
    if context.ui.json {
        return context.ui.document(&json!({ "path": path, "exists": path.exists() }));
    }
    context.ui.line(&path.display().to_string())
}

fn check(context: &Context, sources: &Sources) -> Result<(), Failure> {
    let settings = config::load(sources).map_err(|error| bad_config(&error))?;
    if context.ui.json {
        return context.ui.document(&json!({ "valid": true, "notices": settings.notices }));
    }
    for notice in &settings.notices {
        context.ui.note(notice);
    }
    context.ui.line("the configuration is valid")
}
