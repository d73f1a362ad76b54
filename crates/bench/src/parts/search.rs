//! Text in many small files and in few large ones, against ripgrep.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::caches;
use crate::peers::{blocking, process};
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::samples::Samples;
use crate::sources::{self, Made, WANTED};

const RG: &str = "rg";
const RG_JSON: &str = "rg --json";
const GOAL: f64 = 1.2;

/// Lines as people read them, and with the places of matches, as ours have them.
const LINES: [&str; 6] =
    [RG, "--no-config", "--no-heading", "--line-number", "--color=never", WANTED];
const RECORDS: [&str; 4] = [RG, "--no-config", "--json", WANTED];

const SMALL: &str = "small";
const LARGE: &str = "large";

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let scale = run.scale;
    let cold =
        if scale.cold_rounds > 0 { caches::can_be_emptied() } else { super::cold_left_out() };
    let cold_rounds = if cold.is_ok() { scale.cold_rounds } else { 0 };
    let mut contenders = vec![SUBJECT];
    if process::find(RG).is_some() {
        contenders.extend([RG, RG_JSON]);
    }
    let rounds = 1 + scale.long_rounds;
    run.progress.begin("search", (rounds + cold_rounds) * contenders.len() * 2);
    let id = run.api().create_ready(Network::None).await?;
    let workspace = sources::workspace_of(run.daemon.data_dir(), &id)?;
    let at = workspace.clone();
    let (small, large) = blocking(move || {
        let small = sources::small(&at.join(SMALL), scale.small_files)?;
        Ok((small, sources::large(&at.join(LARGE), scale.large_bytes)?))
    })
    .await?;
    let mut samples = Samples::default();
    let trees = [(SMALL, small), (LARGE, large)];
    for (tree, made) in trees {
        for round in 0..rounds {
            for who in turns(&contenders, round.abs_diff(1)) {
                let took = once(run, who, &id, &workspace, tree, made).await?;
                if round > 0 {
                    samples.add_time(&measure_of(tree, "warm"), who, took);
                }
                run.progress.step();
            }
        }
        for round in 0..cold_rounds {
            for who in turns(&contenders, round) {
                caches::empty().await?;
                let took = once(run, who, &id, &workspace, tree, made).await?;
                samples.add_time(&measure_of(tree, "cold"), who, took);
                run.progress.step();
            }
        }
    }
    run.api().destroy(&id).await?;
    let mut section = Section::new("Search", method(run));
    section.series = samples.into_series();
    for (tree, _) in trees {
        for state in ["warm", "cold"] {
            let measure = measure_of(tree, state);
            section.compare(&measure, SUBJECT, RG, Some(Goal::AtMost(GOAL)));
            section.compare(&measure, SUBJECT, RG_JSON, None);
        }
    }
    section.fact("lines found in small files", small.wanted as f64, Unit::Count);
    section.fact("lines found in large files", large.wanted as f64, Unit::Count);
    if contenders.len() == 1 {
        let reason = "there is no rg here; scripts/setup.sh --bench installs it".to_owned();
        section.skipped.push(Skipped { name: RG.into(), reason });
    }
    section.skipped.extend(cold.err().map(|reason| Skipped { name: "cold".into(), reason }));
    Ok(section)
}

fn measure_of(tree: &str, state: &str) -> String {
    format!("text in {tree} files, {state}")
}

fn method(run: &Run<'_>) -> String {
    format!(
        "A name that few lines have, in {} small files and in {} MiB of files of 1 MiB, in a sandbox's \
         workspace. Sandbank's is `POST …/search:text` over HTTP; `rg` runs on the machine, on the very \
         same directory, with its own number of threads, once with lines and once with records like \
         ours. What they find is counted or read from a pipe, and thrown away. Cold is after the \
         machine's caches were emptied, before each.",
        run.scale.small_files,
        run.scale.large_bytes >> 20
    )
}

async fn once(
    run: &Run<'_>,
    who: &str,
    id: &str,
    workspace: &Path,
    tree: &str,
    made: Made,
) -> anyhow::Result<Duration> {
    if who == SUBJECT {
        let begin = Instant::now();
        let end = run.api().search(id, tree, WANTED).await?;
        let took = begin.elapsed();
        let all = end["truncated"] == false && end["matches"] == made.wanted;
        anyhow::ensure!(all, "{} are to be found: {end}", made.wanted);
        return Ok(took);
    }
    let arguments = if who == RG { &LINES[..] } else { &RECORDS[..] };
    let mut rg = process::bare(arguments)?;
    rg.arg(".").current_dir(workspace.join(tree));
    blocking(move || Ok(process::drain(&mut rg)?.1)).await
}
