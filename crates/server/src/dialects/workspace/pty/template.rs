//! What a terminal may run: the server's own words, whatever a client says.

use crate::app::App;

/// As `/api/config` and the refusal of any other name them.
pub(in super::super) const PROVIDERS: [&str; 2] = ["shell", "claude"];

/// Where a client does not say.
pub(super) const DEFAULT: &str = "shell";

pub(super) struct Template {
    pub(super) name: &'static str,
    pub(super) argv: Vec<String>,
}

impl Template {
    pub(super) fn named(app: &App, name: &str) -> Option<Self> {
        let settings = &app.settings().workspace;
        let name = PROVIDERS.into_iter().find(|known| *known == name)?;
        let argv = match name {
            DEFAULT => &settings.pty_shell_command,
            // Interactive, with its own questions about what it may do.
            _ => &settings.chat_command,
        };
        Some(Self { name, argv: argv.clone() })
    }
}
