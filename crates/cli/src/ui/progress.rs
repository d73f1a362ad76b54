//! Progress bars on stderr, on terminals only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Ui;

/// A bar that is not there when nobody would see it.
#[derive(Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts bytes towards a total.
    pub(crate) fn bytes(ui: &Ui, label: &str, total: u64) -> Self {
        let template = "{msg} {wide_bar:.cyan/dim} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        Self::with_template(ui, label, Some(total), template)
    }

    /// Shows that something is going on.
    pub(crate) fn spinner(ui: &Ui, label: &str) -> Self {
        let progress = Self::with_template(ui, label, None, "{spinner:.cyan} {msg}");
        progress.0.enable_steady_tick(std::time::Duration::from_millis(100));
        progress
    }

    fn with_template(ui: &Ui, label: &str, total: Option<u64>, template: &str) -> Self {
        let visible = ui.stderr_is_terminal && !ui.json;
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(label.to_owned());
        let style = ProgressStyle::with_template(template).expect("the templates are constants");
        Self(bar.with_style(style))
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    pub(crate) fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}
