//! The workspace of `/api` in each of its modes: when it is there, and how fast it answers.

use std::time::Instant;

use super::{Run, turns};
use crate::daemon::PrivateDaemon;
use crate::report::{Goal, Section, Unit};
use crate::samples::Samples;
use crate::workspace_modes::{FILE, FILES, Mode, Places};

const READY: &str = "workspace ready";
const READY_GOAL_S: f64 = 1.0;

/// How much longer the tree may take where it is not a directory of this machine.
const TREE: &str = "/api/tree";
const TREE_GOAL: f64 = 2.0;

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let (_, rounds) = run.rounds_of_several();
    run.progress.begin("workspace", Mode::ALL.len() * run.scale.long_rounds + rounds);
    let places = Places::prepare(run.binary).await?;
    let measured = in_places(run, &places).await;
    let finished = places.finish().await;
    let samples = measured?;
    finished?;

    let mut section = Section::new("Workspace", method());
    section.series = samples.into_series();
    for mode in Mode::ALL {
        let who = mode.who();
        let Some(p50) = section.median(READY, &who) else { continue };
        let goal = Goal::AtMost(READY_GOAL_S);
        section.figure(format!("{READY}: {who}"), p50, Unit::Seconds, goal);
    }
    let local = Mode::Local.who();
    for (measure, _) in questions() {
        for mode in [Mode::Sandbox, Mode::Remote] {
            let goal = (measure == TREE).then_some(Goal::AtMost(TREE_GOAL));
            section.compare(measure, &mode.who(), &local, goal);
        }
    }
    Ok(section)
}

fn questions() -> [(&'static str, String); 3] {
    [
        (TREE, "/api/tree?path=.".to_owned()),
        ("/api/file", format!("/api/file?path={FILE}")),
        ("/api/git/status", "/api/git/status".to_owned()),
    ]
}

fn method() -> String {
    format!(
        "A daemon on an empty data directory is ready when it has answered its first `/api/tree`; in \
         mode sandbox its engine, its storage and the sandbox are made on the way, in mode remote the \
         workspace service runs already, on the same machine. Then all three modes are up, each with a \
         repository of {FILES} files of 10 KB, one of them changed, and are asked in turns, over HTTP \
         on loopback: for the first level, for one file, and for the state of the repository, for which \
         `git` runs."
    )
}

async fn in_places(run: &Run<'_>, places: &Places) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    for round in 0..run.scale.long_rounds {
        for mode in turns(&Mode::ALL, round) {
            let (daemon, took) = places.start(*mode).await?;
            samples.add(READY, &mode.who(), Unit::Seconds, took.as_secs_f64());
            daemon.finish().await?;
            run.progress.step();
        }
    }
    let mut daemons = Vec::new();
    let asked = all_modes(run, places, &mut daemons, &mut samples).await;
    for (_, daemon) in daemons {
        daemon.finish().await?;
    }
    asked?;
    Ok(samples)
}

async fn all_modes(
    run: &Run<'_>,
    places: &Places,
    daemons: &mut Vec<(Mode, PrivateDaemon)>,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    for mode in Mode::ALL {
        let (daemon, _) = places.start(mode).await?;
        let filled = match mode {
            Mode::Sandbox => places.fill_sandbox(&daemon).await,
            Mode::Local | Mode::Remote => Ok(()),
        };
        daemons.push((mode, daemon));
        filled?;
    }
    let (warm_up, rounds) = run.rounds_of_several();
    for round in 0..rounds {
        for (mode, daemon) in turns(daemons, round.abs_diff(warm_up)) {
            for (measure, path) in questions() {
                for _ in 0..run.scale.in_a_row {
                    let begin = Instant::now();
                    let answer = daemon.api.get(&path).await?;
                    let took = begin.elapsed();
                    check(measure, &answer)?;
                    if round >= warm_up {
                        samples.add_time(measure, &mode.who(), took);
                    }
                }
            }
        }
        run.progress.step();
    }
    Ok(())
}

/// Everybody must have said the same.
fn check(measure: &str, answer: &serde_json::Value) -> anyhow::Result<()> {
    let right = match measure {
        // Beside the repository's own directory and the new file.
        TREE => answer["entries"].as_array().is_some_and(|entries| entries.len() == FILES + 2),
        "/api/file" => answer["content"].as_str().is_some_and(|text| text.ends_with("changed\n")),
        _ => answer["files"][FILE] == "M" && answer["files"]["new.rs"] == "U",
    };
    anyhow::ensure!(right, "{measure} answered something else: {answer}");
    Ok(())
}
