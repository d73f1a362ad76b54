//! Many sandboxes that are asked for at the same moment.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::docker::{BY_API, ON_DOCKER};
use super::{Run, turns};
use crate::api::{Api, Network};
use crate::peers::docker::{Docker, Kind};
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::samples::Samples;

const GOAL_ALL_RAN_S: f64 = 2.0;
const GOAL_FAILED: f64 = 0.0;

/// Of containers, after one that is thrown away.
const CONTAINER_ROUNDS: usize = 2;

const METHOD: &str = "So many callers ask for a sandbox at the same moment and run `true` in it as soon as they \
    have it. A create counts from the request to the answer, waiting for a turn included; all have run when the \
    last `true` has ended. The daemon lets a few creates into its engine at a time, in the order they came; \
    Docker's API is asked for as many containers, create and start, all at once and with nobody in between, \
    and `true` is its exec.";

#[derive(Clone, Copy)]
enum Contender<'a> {
    Sandbank(&'static str, &'a Api),
    Bare(&'a Docker),
}

/// What became of those that were asked for at once.
#[derive(Default)]
struct Crowd {
    creates: Vec<Duration>,
    all_ran: Duration,
    failures: Vec<String>,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut section = Section::new("At once", METHOD);
    let (native, containers) = (run.scale.at_once, run.scale.containers_at_once);
    let subject = [Contender::Sandbank(SUBJECT, run.api())];
    let mut on_docker = Vec::new();
    match (run.on_docker, run.peers.docker()) {
        (Ok(daemon), Some(docker)) => {
            on_docker.push(Contender::Sandbank(ON_DOCKER, &daemon.api));
            on_docker.push(Contender::Bare(docker));
        }
        (reason, _) => {
            let reason = reason.err().unwrap_or("there is no private Docker daemon").to_owned();
            section.skipped.push(Skipped { name: ON_DOCKER.to_owned(), reason });
        }
    }
    run.progress.begin("at once", run.scale.long_rounds + CONTAINER_ROUNDS + 2);
    let mut samples = Samples::default();
    let mut failures = Vec::new();
    let crowds =
        [(&subject[..], native, run.scale.long_rounds), (&on_docker, containers, CONTAINER_ROUNDS)];
    for (contenders, count, rounds) in crowds {
        for round in 0..=rounds {
            for contender in turns(contenders, round.abs_diff(1)) {
                let crowd = contender.crowd(count).await?;
                failures.extend(crowd.failures.iter().map(|text| (contender.name(), text.clone())));
                if round > 0 {
                    crowd.add_to(&mut samples, contender.name(), count);
                }
            }
            run.progress.step();
        }
    }
    section.series = samples.into_series();
    judge(&mut section, SUBJECT, native, &failures, Some(Goal::AtMost(GOAL_ALL_RAN_S)));
    if !on_docker.is_empty() {
        judge(&mut section, ON_DOCKER, containers, &failures, None);
        section.compare(&created(containers), ON_DOCKER, BY_API, None);
        section.compare(&all_ran(containers), ON_DOCKER, BY_API, None);
    }
    for (who, reason) in failures {
        let name = format!("a create of {who}");
        section.skipped.push(Skipped { name, reason });
    }
    Ok(section)
}

fn judge(
    section: &mut Section,
    who: &str,
    count: usize,
    failures: &[(&'static str, String)],
    goal: Option<Goal>,
) {
    let (created, all_ran) = (created(count), all_ran(count));
    if let (Some(goal), Some(value)) = (goal, section.median(&all_ran, who)) {
        section.figure(format!("{all_ran}: {who}"), value, Unit::Seconds, goal);
    }
    let failed = failures.iter().filter(|(name, _)| *name == who).count();
    let what = format!("failed of {count} at once: {who}");
    section.figure(what, failed as f64, Unit::Count, Goal::AtMost(GOAL_FAILED));
    if let Some(slowest) = section.summary(&created, who).map(|summary| summary.worst) {
        section.fact(format!("slowest {created}: {who}"), slowest, Unit::Milliseconds);
    }
}

fn created(count: usize) -> String {
    format!("create, {count} at once")
}

fn all_ran(count: usize) -> String {
    format!("all of {count} at once have run")
}

impl Contender<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Sandbank(name, _) => name,
            Self::Bare(_) => BY_API,
        }
    }

    async fn crowd(&self, count: usize) -> anyhow::Result<Crowd> {
        let begin = Instant::now();
        let callers = (0..count).map(|_| self.caller());
        let outcomes = join_all(callers).await;
        let mut crowd = Crowd { all_ran: begin.elapsed(), ..Crowd::default() };
        let mut ids = Vec::new();
        for outcome in outcomes {
            match outcome {
                Ok((id, created, ran)) => {
                    ids.push(id);
                    match ran {
                        Ok(()) => crowd.creates.push(created),
                        Err(error) => crowd.failures.push(format!("{error:#}")),
                    }
                }
                Err(error) => crowd.failures.push(format!("{error:#}")),
            }
        }
        for id in &ids {
            match self {
                Self::Sandbank(_, api) => api.destroy(id).await?,
                Self::Bare(docker) => docker.remove(id).await?,
            }
        }
        Ok(crowd)
    }

    /// Makes one, says how long that took, and whether `true` ran in it: one in which it did not is
    /// there all the same.
    async fn caller(&self) -> anyhow::Result<(String, Duration, anyhow::Result<()>)> {
        let begin = Instant::now();
        let id = match self {
            Self::Sandbank(_, api) => api.create(Network::None).await?,
            Self::Bare(docker) => docker.create(Kind::Programs).await?,
        };
        let created = begin.elapsed();
        let ran = match self {
            Self::Sandbank(_, api) => api.run(&id, &["true"]).await,
            Self::Bare(docker) => docker.exec(&id, &["true"]).await.map(drop),
        };
        Ok((id, created, ran))
    }
}

impl Crowd {
    fn add_to(&self, samples: &mut Samples, who: &str, count: usize) {
        samples.add(&all_ran(count), who, Unit::Seconds, self.all_ran.as_secs_f64());
        for created in &self.creates {
            samples.add_time(&self::created(count), who, *created);
        }
    }
}
