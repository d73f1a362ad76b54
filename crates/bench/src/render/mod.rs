//! Reports as documents: Markdown that also reads well in a terminal, and a plot beside it.

mod markdown;
mod number;
mod svg;
mod table;

use std::path::Path;

use anyhow::Context;

use crate::report::Report;

pub use markdown::to_markdown;
pub use svg::to_svg;

/// Writes the document and, beside it under the same name, the plot it shows.
pub fn write(report: &Report, path: &Path) -> anyhow::Result<()> {
    let plot = path.with_extension("svg");
    let name = plot.file_name().context("the document needs a file name")?;
    let document = format!(
        "{}\n## Plot\n\n![Medians of every measure]({})\n",
        to_markdown(report),
        name.to_string_lossy()
    );
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    };
    write(&plot, to_svg(report))?;
    write(path, document)
}

#[cfg(test)]
pub(crate) mod sample {
    //! A small report for the tests of the renderers.

    use crate::machine::Machine;
    use crate::report::{Contender, Goal, Report, SUBJECT, Section, Skipped, Unit};
    use crate::samples::Samples;

    pub(crate) fn report() -> Report {
        let mut samples = Samples::default();
        for value in [2.0, 3.0, 4.0] {
            samples.add("create to ready", SUBJECT, Unit::Milliseconds, value);
            samples.add("create to ready", "bwrap", Unit::Milliseconds, value * 1.5);
        }
        samples.add("file up", SUBJECT, Unit::MegabytesPerSecond, 1234.0);
        let mut section = Section::new("Create <and> destroy", "How it was done.");
        section.series = samples.into_series();
        section.compare("create to ready", SUBJECT, "bwrap", Some(Goal::AtMost(1.0)));
        section.compare("create to ready", "bwrap", SUBJECT, Some(Goal::AtMost(1.0)));
        section.fact("daemon's memory before", 12.34, Unit::Megabytes);
        section.fact("sandboxes", 200.0, Unit::Count);
        Report {
            version: "1.2.3".into(),
            debug_build: false,
            quick: false,
            measured_on: "Sun, 15 Nov 2026".into(),
            command: "sandbank bench".into(),
            machine: Machine {
                cpu: "Some CPU".into(),
                cores: 2,
                virtual_machine: true,
                memory_gb: 24.1,
                system: "Debian 12".into(),
                kernel: "6.1.0".into(),
                cgroup: "v2".into(),
                file_system: "ext4".into(),
                storage: "btrfs in a pool file on ext4".into(),
                load_before: 0.25,
            },
            contenders: vec![Contender { name: "bwrap".into(), what: "bubblewrap 0.8.0".into() }],
            skipped: vec![Skipped { name: "Docker".into(), reason: "not here".into() }],
            unmeasured: vec![Skipped { name: "fork".into(), reason: "there is none".into() }],
            sections: vec![section],
            took_s: 61.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_shows_the_plot_that_lies_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("figures.md");
        write(&sample::report(), &path).unwrap();
        let document = std::fs::read_to_string(&path).unwrap();
        assert!(document.contains("](figures.svg)"), "{document}");
        assert!(std::fs::read_to_string(dir.path().join("figures.svg")).unwrap().contains("<svg"));
    }
}
