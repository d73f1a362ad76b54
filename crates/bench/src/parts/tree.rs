//! All of a large tree, against `find`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::caches;
use crate::peers::{blocking, process};
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::samples::Samples;
use crate::sources::{self, Made};

const FIND: &str = "find";
const GOAL: f64 = 1.2;

/// Names alone, and with what `stat` says; the second as `find` prints the same.
const MEASURES: [(&str, bool); 2] =
    [("whole tree", false), ("whole tree with sizes, modes and times", true)];
const ALL_OF_IT: &str = "%y %s %m %T@ %p\\n";
const NAMES_AND_KINDS: &str = "%y %p\\n";

/// Where the tree is in the workspace.
const ROOT: &str = "tree";

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let count = run.scale.small_files;
    let cold =
        if run.scale.cold_rounds > 0 { caches::can_be_emptied() } else { super::cold_left_out() };
    let cold_rounds = if cold.is_ok() { run.scale.cold_rounds } else { 0 };
    let rounds = 1 + run.scale.long_rounds;
    run.progress.begin("tree", (rounds + cold_rounds) * 2 * MEASURES.len());
    let id = run.api().create_ready(Network::None).await?;
    let workspace = sources::workspace_of(run.daemon.data_dir(), &id)?;
    let root = workspace.join(ROOT);
    let at = root.clone();
    let made = blocking(move || sources::small(&at, count)).await?;
    let mut samples = Samples::default();
    for (measure, stat) in MEASURES {
        for round in 0..rounds {
            for who in turns(&[SUBJECT, FIND], round.abs_diff(1)) {
                let took = once(run, who, &id, &root, stat, made).await?;
                if round > 0 {
                    samples.add_time(&format!("{measure}, warm"), who, took);
                }
                run.progress.step();
            }
        }
        for round in 0..cold_rounds {
            for who in turns(&[SUBJECT, FIND], round) {
                caches::empty().await?;
                let took = once(run, who, &id, &root, stat, made).await?;
                samples.add_time(&format!("{measure}, cold"), who, took);
                run.progress.step();
            }
        }
    }
    run.api().destroy(&id).await?;
    let mut section = Section::new("Tree", method(count));
    section.series = samples.into_series();
    for (measure, _) in MEASURES {
        section.compare(&format!("{measure}, warm"), SUBJECT, FIND, Some(Goal::AtMost(GOAL)));
        section.compare(&format!("{measure}, cold"), SUBJECT, FIND, Some(Goal::AtMost(GOAL)));
    }
    section.fact("files and directories", made.entries as f64, Unit::Count);
    section.skipped.extend(cold.err().map(|reason| Skipped { name: "cold".into(), reason }));
    Ok(section)
}

fn method(count: usize) -> String {
    format!(
        "{count} small files in directories three deep, in a sandbox's workspace. Sandbank's is \
         `GET …/files:tree` over HTTP, every line read and thrown away; `find` runs on the machine, on \
         the very same directory, and prints as much of each entry into a pipe, where it is read and \
         thrown away, too. Cold is after the machine's caches were emptied, before each."
    )
}

async fn once(
    run: &Run<'_>,
    who: &str,
    id: &str,
    root: &Path,
    stat: bool,
    made: Made,
) -> anyhow::Result<Duration> {
    if who == SUBJECT {
        let begin = Instant::now();
        let end = run.api().tree(id, ROOT, stat).await?;
        let took = begin.elapsed();
        anyhow::ensure!(end["truncated"] == false, "the tree was cut: {end}");
        anyhow::ensure!(end["visited"] == made.entries, "{} were made: {end}", made.entries);
        return Ok(took);
    }
    let mut find = find(root, stat)?;
    blocking(move || Ok(process::drain(&mut find)?.1)).await
}

fn find(root: &Path, stat: bool) -> anyhow::Result<Command> {
    let format = if stat { ALL_OF_IT } else { NAMES_AND_KINDS };
    let mut find = process::bare(&[FIND, ".", "-printf", format])?;
    find.current_dir(root);
    Ok(find)
}
