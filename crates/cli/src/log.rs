//! Where log lines go: always stderr, in the form that suits who reads it.

use std::io::IsTerminal;

use sandbank_server::config::{LogFormat, LogSettings};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

const QUIET_LIBRARIES: &str = "sqlx=warn,hyper=info,hyper_util=info,h2=info,reqwest=info";

/// JSON for machines, text for people at a terminal.
pub(crate) fn for_server(settings: &LogSettings) -> Result<(), Failure> {
    let filter = filter(&settings.filter)?;
    let terminal = std::io::stderr().is_terminal();
    let pretty = match settings.format {
        LogFormat::Auto => terminal,
        LogFormat::Json => false,
        LogFormat::Pretty => true,
    };
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if pretty {
        lines.with_ansi(colour).with_target(false).init();
    } else {
        lines.json().flatten_event(true).init();
    }
    Ok(())
}

/// Commands speak for themselves: only errors, or what SANDBANK_LOG asks for.
pub(crate) fn for_command() {
    let asked = std::env::var("SANDBANK_LOG").ok().and_then(|text| filter(&text).ok());
    let filter = asked.unwrap_or_else(|| EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .init();
}

/// A bare level is about our own parts: libraries that log every statement or frame stay quiet.
fn filter(text: &str) -> Result<EnvFilter, Failure> {
    let bare = !text.contains(['=', ',']);
    let whole = if bare { format!("{text},{QUIET_LIBRARIES}") } else { text.to_owned() };
    EnvFilter::try_new(whole).map_err(|error| {
        Failure::usage(format!("the log filter {text:?} makes no sense: {error}"))
            .hint("use error, warn, info, debug or trace")
    })
}
