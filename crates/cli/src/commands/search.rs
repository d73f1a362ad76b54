//! `sandbank search`: names and text in a sandbox's workspace, printed as ripgrep does.

use clap::Args;
use clap::builder::styling::AnsiColor;
use sandbank_protocol::{FileKind, FoundLine, NameRecord, SearchCase, TextRecord, TextSearch};

use crate::client::ClientError;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::ui::Ui;
use crate::ui::text::printable;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank search sbx7 'fn \\w+_test' src      lines that match, in src
  sandbank search sbx7 -F 'a.b(' -g '*.rs'    the text itself, in Rust files
  sandbank search sbx7 --names main           files and directories by a part of their name

What .gitignore and .ignore exclude, and what begins with a dot, is left out. Ends with 0 when
something was found, with 1 when nothing was, and with 2 where other commands end with 1.")]
pub(crate) struct SearchArgs {
    /// Id, unique beginning of an id, or key
    pub(crate) sandbox: String,
    /// A regular expression; with --names a part of a name
    pub(crate) pattern: String,
    /// Where to search, in the workspace
    pub(crate) path: Option<String>,
    /// Search for names instead of text
    #[arg(long)]
    pub(crate) names: bool,
    /// The pattern is the text itself
    #[arg(short = 'F', long)]
    pub(crate) fixed_strings: bool,
    /// Take capital letters for small ones
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
    /// Only whole words
    #[arg(short, long, conflicts_with = "names")]
    pub(crate) word: bool,
    /// Only files that match, or none that match behind a `!`
    #[arg(short, long, value_name = "GLOB", conflicts_with = "names")]
    pub(crate) glob: Vec<String>,
    /// Lines of context around each match
    #[arg(short = 'C', long, value_name = "LINES", default_value_t = 0)]
    pub(crate) context: u64,
    /// Also what begins with a dot
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Also what ignore-files exclude
    #[arg(long)]
    pub(crate) no_ignore: bool,
}

/// As ripgrep's.
const NOTHING_FOUND: u8 = 1;

pub(crate) async fn run(context: &Context, args: SearchArgs) -> Result<u8, Failure> {
    tokio::select! {
        found = find(context, &args) => match found {
            Ok(true) => Ok(0),
            Ok(false) => Ok(NOTHING_FOUND),
            Err(failure) if failure.exit == Exit::Refused => {
                Err(Failure { exit: Exit::SearchRefused, ..failure })
            }
            Err(failure) => Err(failure),
        },
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted as u8),
    }
}

async fn find(context: &Context, args: &SearchArgs) -> Result<bool, Failure> {
    let connection = Connection::open(context, Reach::Running).await?;
    let sandbox = connection.client.resolve(&args.sandbox).await?;
    search(&connection, &context.ui, &sandbox, args).await
}

async fn search(
    connection: &Connection,
    ui: &Ui,
    sandbox: &str,
    args: &SearchArgs,
) -> Result<bool, Failure> {
    if args.names {
        return names(connection, ui, sandbox, args).await;
    }
    let wanted = TextSearch {
        pattern: args.pattern.clone(),
        literal: args.fixed_strings,
        case: case(args),
        word: args.word,
        path: args.path.clone().unwrap_or_default(),
        globs: args.glob.clone(),
        before: args.context,
        after: args.context,
        hidden: args.hidden,
        ignored: args.no_ignore,
        ..TextSearch::default()
    };
    let client = &connection.client;
    let about = |error| refused(error, sandbox);
    let mut found = client.search_text(sandbox, &wanted).await.map_err(about)?;
    let mut last: Option<(String, u64)> = None;
    while let Some(record) = found.line().await.map_err(about)? {
        if ui.json {
            ui.record(&record)?;
        }
        let (line, is_match) = match &record {
            TextRecord::Match(line) => (line, true),
            TextRecord::Context(line) => (line, false),
            TextRecord::End(end) => {
                cut(ui, end.reason.is_some(), end.matches);
                return Ok(end.matches > 0);
            }
        };
        if ui.json {
            continue;
        }
        let follows =
            last.as_ref().is_some_and(|(path, next)| *path == line.path && *next == line.line);
        if args.context > 0 && last.is_some() && !follows {
            ui.line("--")?;
        }
        ui.line(&shown(ui, line, is_match))?;
        let lines = 1 + line.text.matches('\n').count() as u64;
        last = Some((line.path.to_string(), line.line + lines));
    }
    Err(Failure::new(Exit::Internal, "the answer broke off before its end").hint("try it again"))
}

async fn names(
    connection: &Connection,
    ui: &Ui,
    sandbox: &str,
    args: &SearchArgs,
) -> Result<bool, Failure> {
    let case = if args.ignore_case { "insensitive" } else { "smart" };
    let flag = |set| if set { "true" } else { "false" };
    let mut query = vec![
        ("pattern", args.pattern.as_str()),
        ("case", case),
        ("hidden", flag(args.hidden)),
        ("ignored", flag(args.no_ignore)),
    ];
    query.extend(args.path.as_deref().map(|path| ("path", path)));
    let client = &connection.client;
    let about = |error| refused(error, sandbox);
    let mut found = client.search_names(sandbox, &query).await.map_err(about)?;
    while let Some(record) = found.name().await.map_err(about)? {
        if ui.json {
            ui.record(&record)?;
        }
        match record {
            NameRecord::Entry(entry) if !ui.json => {
                let slash = if entry.kind == FileKind::Directory { "/" } else { "" };
                let path = printable(&format!("{}{slash}", entry.path));
                ui.line(&ui.coloured(&path, AnsiColor::Magenta))?;
            }
            NameRecord::Entry(_) => {}
            NameRecord::End(last) => {
                cut(ui, last.end.truncated, last.end.matches);
                return Ok(last.end.matches > 0);
            }
        }
    }
    Err(Failure::new(Exit::Internal, "the answer broke off before its end").hint("try it again"))
}

/// The server's hint is for its own fields.
fn refused(error: ClientError, sandbox: &str) -> Failure {
    let invalid = match &error {
        ClientError::Refused(refusal) => refusal.code.as_deref() == Some("invalid"),
        _ => false,
    };
    let failure = error.about(sandbox);
    if !invalid {
        return failure;
    }
    failure.hint(
        "-F searches for the text as it stands; in a regular expression, put a backslash before a \
         special character",
    )
}

fn case(args: &SearchArgs) -> SearchCase {
    if args.ignore_case { SearchCase::Insensitive } else { SearchCase::Sensitive }
}

fn cut(ui: &Ui, truncated: bool, matches: u64) {
    if truncated {
        ui.note(&format!("there is more than these {matches}: search for less at once"));
    }
}

/// `path:line:text`, or with dashes where it is context. What comes from the sandbox does not act on
/// a terminal.
fn shown(ui: &Ui, line: &FoundLine<'_>, is_match: bool) -> String {
    let mark = if is_match { ':' } else { '-' };
    let path = ui.coloured(&printable(&line.path), AnsiColor::Magenta);
    let number = ui.coloured(&line.line.to_string(), AnsiColor::Green);
    let end = if line.cut.is_some() { " […]" } else { "" };
    format!("{path}{mark}{number}{mark}{}{end}", highlighted(ui, line))
}

fn highlighted(ui: &Ui, line: &FoundLine<'_>) -> String {
    let plain = |text: &str| if ui.stdout_is_terminal { printable(text) } else { text.to_owned() };
    // Places in text that is lossy are not those of its bytes.
    if line.lossy || !ui.colours_stdout() {
        return plain(&line.text);
    }
    let mut text = String::new();
    let mut at = 0;
    for (start, end) in &line.ranges {
        let place = |place: u64| usize::try_from(place.saturating_sub(line.text_at)).ok();
        let (Some(start), Some(end)) = (place(*start), place(*end)) else { break };
        let (Some(before), Some(found)) = (line.text.get(at..start), line.text.get(start..end))
        else {
            break;
        };
        text.push_str(&plain(before));
        text.push_str(&ui.coloured(&plain(found), AnsiColor::Red));
        at = end;
    }
    text.push_str(&plain(line.text.get(at..).unwrap_or_default()));
    text
}
