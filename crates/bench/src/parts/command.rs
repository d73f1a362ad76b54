//! One short command at a time in a live sandbox.

use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::peers::live::Live;
use crate::peers::{DOCKER, NAMES, PROCESS};
use crate::report::{Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;

const TRUE: &str = "true";
const SHELL: &str = "bash -c true";
/// A request that takes the same way to the runner and back, and starts nothing.
const QUESTION: &str = "question to the runner";
const GOAL_AGAINST_PROCESS: f64 = 1.5;
const GOAL_AGAINST_DOCKER: f64 = 40.0;

const METHOD: &str = "One request, `POST …/commands?wait=true`, from the first byte sent to the exit \
    code in hand. The bare process is posix_spawn and wait; crun and runc enter a live container \
    with `exec`; Docker is its exec API in a live container: create, start with the output read to \
    its end, inspect. bwrap makes a whole new sandbox, as it has no other way. A question to the \
    runner takes the same way as a command and starts nothing: together with the bare process it is \
    the floor. Everybody's turn is several in a row; Docker has a turn in some of the rounds only.";

/// Who it is, and what it runs; none is Sandbank.
type Contender<'a> = (Option<&'a Live<'a>>, &'static str);

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let (warm_up, rounds) = run.rounds_of_several();
    run.progress.begin("command", rounds);
    let id = run.api().create_ready(Network::None).await?;
    let mut lives = Vec::new();
    for peer in run.peers.all() {
        lives.push(Live::start(peer).await?);
    }
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    for measure in [TRUE, SHELL] {
        contenders.push((None, measure));
        contenders.extend(lives.iter().map(|live| (Some(live), measure)));
    }
    contenders.push((None, QUESTION));
    let mut samples = Samples::default();
    for round in 0..rounds {
        let kept = round.abs_diff(warm_up);
        for (live, measure) in turns(&contenders, kept) {
            if live.is_some_and(|live| live.peer.is_slow()) && !run.slow_take_part(kept) {
                continue;
            }
            for _ in 0..run.scale.in_a_row {
                let took = once(run, &id, *live, measure).await?;
                if round >= warm_up {
                    let who = live.map_or(SUBJECT, |live| live.peer.name());
                    samples.add_time(measure, who, took);
                }
            }
        }
        run.progress.step();
    }
    for live in lives {
        live.end().await?;
    }
    run.api().destroy(&id).await?;
    let mut section = Section::new("Commands", METHOD);
    section.series = samples.into_series();
    let goal = Some(Goal::AtMost(GOAL_AGAINST_PROCESS));
    section.compare(TRUE, SUBJECT, PROCESS, goal);
    section.times_faster(TRUE, SUBJECT, DOCKER, Some(Goal::AtLeast(GOAL_AGAINST_DOCKER)));
    for peer in NAMES.into_iter().filter(|peer| *peer != PROCESS) {
        section.compare(TRUE, SUBJECT, peer, None);
    }
    for peer in NAMES {
        section.compare(SHELL, SUBJECT, peer, None);
    }
    let parts = (section.median(QUESTION, SUBJECT), section.median(TRUE, PROCESS));
    if let (Some(question), Some(process)) = parts {
        section.fact(
            "floor: a question and a bare process",
            question + process,
            Unit::Milliseconds,
        );
        section.fact("floor ÷ bare process", (question + process) / process, Unit::Times);
    }
    Ok(section)
}

async fn once(
    run: &Run<'_>,
    id: &str,
    live: Option<&Live<'_>>,
    measure: &str,
) -> anyhow::Result<Duration> {
    let argv: &[&str] = match measure {
        SHELL => &["bash", "-c", "true"],
        _ => &["true"],
    };
    if let Some(live) = live {
        return live.run(argv).await;
    }
    let begin = Instant::now();
    match measure {
        QUESTION => run.api().stat_workspace(id).await?,
        _ => run.api().run(id, argv).await?,
    }
    Ok(begin.elapsed())
}
