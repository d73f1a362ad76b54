//! One short command at a time in a live sandbox.

use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::peers::{BWRAP, PROCESS, blocking, process};
use crate::report::{Goal, SUBJECT, Section};
use crate::samples::Samples;

const TRUE: &str = "true";
const SHELL: &str = "bash -c true";

const METHOD: &str = "Start request and wait request, from the first byte sent to the exit code in \
    hand. The bare process is posix_spawn and wait; bwrap makes a whole new sandbox for it, as it \
    has no other way.";

struct Contender {
    measure: &'static str,
    who: &'static str,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut contenders = vec![
        Contender { measure: TRUE, who: SUBJECT },
        Contender { measure: TRUE, who: PROCESS },
        Contender { measure: SHELL, who: SUBJECT },
        Contender { measure: SHELL, who: PROCESS },
    ];
    if run.peers.bwrap.is_some() {
        contenders.push(Contender { measure: TRUE, who: BWRAP });
        contenders.push(Contender { measure: SHELL, who: BWRAP });
    }
    let rounds = run.scale.warm_up + run.scale.rounds;
    run.progress.begin("command", rounds);
    let id = run.api().create_ready(Network::None).await?;
    let mut samples = Samples::default();
    for round in 0..rounds {
        for contender in turns(&contenders, round.abs_diff(run.scale.warm_up)) {
            let took = once(run, &id, contender).await?;
            if round >= run.scale.warm_up {
                samples.add_time(contender.measure, contender.who, took);
            }
        }
        run.progress.step();
    }
    run.api().destroy(&id).await?;
    let mut section = Section::new("Commands", METHOD);
    section.series = samples.into_series();
    section.compare(TRUE, SUBJECT, PROCESS, Some(Goal::AtMost(1.5)));
    section.compare(TRUE, SUBJECT, BWRAP, None);
    section.compare(SHELL, SUBJECT, PROCESS, None);
    section.compare(SHELL, SUBJECT, BWRAP, None);
    Ok(section)
}

async fn once(run: &Run<'_>, id: &str, contender: &Contender) -> anyhow::Result<Duration> {
    let argv: &[&str] = match contender.measure {
        SHELL => &["bash", "-c", "true"],
        _ => &["true"],
    };
    let mut command = match (contender.who, &run.peers.bwrap) {
        (BWRAP, Some(bwrap)) => bwrap.command(argv),
        (PROCESS, _) => process::bare(argv)?,
        _ => {
            let begin = Instant::now();
            run.api().run(id, argv).await?;
            return Ok(begin.elapsed());
        }
    };
    blocking(move || process::run(&mut command)).await
}
