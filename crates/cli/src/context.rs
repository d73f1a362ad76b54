//! What every command gets: where to write, and where the server is said to be.

use crate::options::GlobalOptions;
use crate::ui::Ui;

#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) ui: Ui,
    /// Named by the person; nothing else is tried then.
    pub(crate) url: Option<String>,
}

impl Context {
    pub(crate) fn new(options: &GlobalOptions) -> Self {
        let url = options.url.clone().filter(|url| !url.trim().is_empty());
        Self { ui: Ui::new(options.json), url }
    }
}
