//! Holding a sandbox still and letting it go on.

use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::peers::DOCKER;
use crate::peers::docker::Kind;
use crate::report::{Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;
use crate::{http, limits};

const PAUSE: &str = "pause";
const RESUME: &str = "resume";
const GOAL_MS: f64 = 1.0;

const METHOD: &str = "A sandbox in which a program runs is paused and resumed; each request counts \
    until it is answered. After every resume a command must run, which is not counted. Docker's \
    pause and unpause take part in some of the rounds only.";

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let rounds = run.scale.warm_up + run.scale.rounds;
    run.progress.begin("pause", rounds);
    let id = run.api().create_ready(Network::None).await?;
    run.api().start(&id, &["sleep", "infinity"]).await?;
    let container = match run.peers.docker() {
        Some(docker) => Some(docker.create(Kind::Host).await?),
        None => None,
    };
    let mut contenders = vec![SUBJECT];
    contenders.extend(container.is_some().then_some(DOCKER));
    let mut samples = Samples::default();
    for round in 0..rounds {
        for who in turns(&contenders, round.abs_diff(run.scale.warm_up)) {
            let (pause, resume) = match (run.peers.docker(), &container) {
                (Some(docker), Some(container)) if *who == DOCKER => {
                    if !run.slow_take_part(round.abs_diff(run.scale.warm_up)) {
                        continue;
                    }
                    let pause = settled(async || docker.pause(container).await).await?;
                    (pause, settled(async || docker.resume(container).await).await?)
                }
                _ => sandbank(run, &id).await?,
            };
            if round >= run.scale.warm_up {
                samples.add_time(PAUSE, who, pause);
                samples.add_time(RESUME, who, resume);
            }
        }
        run.progress.step();
    }
    run.api().destroy(&id).await?;
    if let (Some(docker), Some(container)) = (run.peers.docker(), container) {
        docker.remove(&container).await?;
    }
    let mut section = Section::new("Pause and resume", METHOD);
    section.series = samples.into_series();
    for measure in [PAUSE, RESUME] {
        if let Some(value) = section.median(measure, SUBJECT) {
            let what = format!("{measure}: {SUBJECT}");
            section.figure(what, value, Unit::Milliseconds, Goal::AtMost(GOAL_MS));
        }
        section.compare(measure, SUBJECT, DOCKER, None);
    }
    Ok(section)
}

async fn sandbank(run: &Run<'_>, id: &str) -> anyhow::Result<(Duration, Duration)> {
    let pause = timed(run.api().pause(id)).await?;
    let resume = timed(run.api().resume(id)).await?;
    run.api().run(id, &["true"]).await?;
    Ok((pause, resume))
}

/// For a moment Docker may take a container for paused that is not, or the other way round; only
/// the request that it heeds counts.
async fn settled(ask: impl AsyncFn() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let end = Instant::now() + limits::CALL;
    loop {
        match timed(ask()).await {
            Err(error) if http::is_conflict(&error) && Instant::now() < end => {
                tokio::time::sleep(limits::POLL).await;
            }
            answered => return answered,
        }
    }
}

async fn timed(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work.await?;
    Ok(begin.elapsed())
}
