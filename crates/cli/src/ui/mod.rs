//! Where everything a person or a script sees is written.
//!
//! Colours, tables and progress bars appear on terminals only, and `NO_COLOR` is honoured. With
//! `--json` stdout carries JSON and nothing else. A closed stdout is a quiet end, never a panic.

mod progress;
mod table;
pub(crate) mod text;

use std::io::{IsTerminal, Write};

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

pub(crate) use progress::Progress;
pub(crate) use table::Table;

use crate::failure::{Exit, Failure};

#[derive(Debug, Clone)]
pub(crate) struct Ui {
    pub(crate) json: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    colour_allowed: bool,
}

impl Ui {
    pub(crate) fn new(json: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            json,
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            colour_allowed: !refused,
        }
    }

    /// One line of the command's result.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    /// Raw bytes of the command's result.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        written.map_err(Failure::io("write to standard output"))
    }

    /// A whole JSON document, indented for people who look at it anyway.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(&encoded(serde_json::to_string_pretty(value))?)
    }

    /// One line of newline-delimited JSON.
    pub(crate) fn record(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(&encoded(serde_json::to_string(value))?)
    }

    /// Something worth knowing that is not the result. Never on stdout.
    pub(crate) fn note(&self, text: &str) {
        if !self.json {
            self.to_stderr(&format!("{} {text}", self.dim("sandbank:")));
        }
    }

    /// A lost stderr is not worth failing for. A terminal in raw mode needs the carriage told.
    pub(crate) fn to_stderr(&self, text: &str) {
        let raw = crossterm::terminal::is_raw_mode_enabled().unwrap_or(false);
        let end = if raw { "\r\n" } else { "\n" };
        let _ = write!(std::io::stderr().lock(), "{text}{end}");
    }

    pub(crate) fn red(&self, text: &str) -> String {
        self.on_stderr(text, AnsiColor::Red.on_default().bold())
    }

    pub(crate) fn cyan(&self, text: &str) -> String {
        self.on_stderr(text, AnsiColor::Cyan.on_default())
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.on_stderr(text, Style::new().dimmed())
    }

    pub(crate) fn colours_stdout(&self) -> bool {
        self.stdout_is_terminal && self.colour_allowed && !self.json
    }

    /// Text for stdout in a colour, where that makes sense.
    pub(crate) fn coloured(&self, text: &str, colour: AnsiColor) -> String {
        self.styled(text, colour.on_default(), self.stdout_is_terminal)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled(text, Style::new().bold(), self.stdout_is_terminal)
    }

    fn on_stderr(&self, text: &str, style: Style) -> String {
        self.styled(text, style, self.stderr_is_terminal)
    }

    fn styled(&self, text: &str, style: Style, terminal: bool) -> String {
        if terminal && self.colour_allowed && !self.json {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

fn encoded(result: serde_json::Result<String>) -> Result<String, Failure> {
    result.map_err(|error| Failure::new(Exit::Internal, format!("cannot encode JSON: {error}")))
}
