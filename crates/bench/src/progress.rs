//! How far the run is: a bar on a terminal, one line per part elsewhere. Always on stderr.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) struct Progress {
    bar: ProgressBar,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style =
            ProgressStyle::with_template("{msg:12} {wide_bar:.cyan/dim} {pos}/{len} {elapsed}")
                .expect("the template is a constant");
        Self { bar: bar.with_style(style), terminal }
    }

    pub(crate) fn begin(&self, what: &str, steps: usize) {
        self.bar.set_length(steps as u64);
        self.bar.set_position(0);
        self.bar.set_message(what.to_owned());
        if !self.terminal {
            eprintln!("bench: {what}");
        }
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
