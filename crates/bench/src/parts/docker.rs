//! Sandboxes that are containers, beside containers made by hand and beside the native engine.

use std::time::{Duration, Instant};

use super::create::{ANSWERED, GONE, READY, Times, from_pool, sandbank};
use super::{Run, turns};
use crate::api::{Api, Network};
use crate::peers::docker::{Cli, Docker, Kind};
use crate::peers::{blocking, process, until_input_ends};
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::samples::Samples;

const TRUE: &str = "true";

pub(super) const ON_DOCKER: &str = "sandbank on Docker";
const FROM_POOL: &str = "sandbank on Docker, from the pool";
pub(super) const BY_API: &str = "Docker's API";
const BY_CLI: &str = "docker run";
const EXEC_BY_CLI: &str = "docker exec";

const GOAL_AGAINST_API: f64 = 1.1;
const GOAL_COMMAND_MS: f64 = 0.5;
const GOAL_FROM_POOL_MS: f64 = 5.0;

const METHOD: &str = "A second private daemon, whose engine is Docker, in the private Docker daemon of the \
    peers. Everybody's container is of one image, has no network, limits of memory, cpu and processes, \
    no capabilities, a root that cannot be written to, a volume as workspace, a `/tmp` in memory, and no \
    logs; a sandbox has its own seccomp filter, Landlock and covered kernel files on top of it, and its \
    runner. Ready is, for a sandbox, when its runner has answered a request of its own; for Docker's API \
    (create, then start) when the start is answered, whatever runs inside by then; for `docker run` when \
    a byte sent to `cat` has come back. Destroyed is when `DELETE` is answered, and for `docker run` when \
    `cat` has seen the end of its input and `--rm` has removed the container. From the pool: the machine was \
    ready when the request came, and another is made in its place while it is destroyed. Commands are one \
    request, `POST …/commands?wait=true`, to either daemon; Docker's API is create exec, start with the \
    output read to its end, and inspect.";

/// Makes one and ends it.
#[derive(Clone, Copy)]
enum Maker<'a> {
    Sandbank(&'a Api),
    Pool(&'a Api),
    Bare(&'a Docker),
    Cli(&'a Cli),
}

/// Runs `true` in something that is there already.
#[derive(Clone, Copy)]
enum Runner<'a> {
    Sandbank(&'a Api, &'a str),
    OnDocker(&'a Api, &'a str),
    Bare(&'a Docker, &'a str),
    Cli(&'a Cli, &'a str),
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut section = Section::new("Sandboxes on Docker", METHOD);
    let (api, docker) = match (run.on_docker, run.peers.docker()) {
        (Ok(daemon), Some(docker)) => (&daemon.api, docker),
        (Err(reason), _) => return Ok(skipped(section, ON_DOCKER, reason)),
        (_, None) => return Ok(skipped(section, ON_DOCKER, "there is no private Docker daemon")),
    };
    if let Err(reason) = &docker.cli {
        section = skipped(section, BY_CLI, reason);
    }
    let mut samples = Samples::default();
    makers(run, api, docker, &mut samples).await?;
    runners(run, api, docker, &mut samples).await?;
    section.series = samples.into_series();
    let goal = |limit| Some(Goal::AtMost(limit));
    section.compare(READY, ON_DOCKER, BY_API, goal(GOAL_AGAINST_API));
    section.compare(READY, ON_DOCKER, BY_CLI, None);
    section.compare(GONE, ON_DOCKER, BY_API, None);
    section.compare(GONE, ON_DOCKER, BY_CLI, None);
    if let Some(value) = section.median(ANSWERED, FROM_POOL) {
        let what = format!("{ANSWERED}: {FROM_POOL}");
        section.figure(what, value, Unit::Milliseconds, Goal::AtMost(GOAL_FROM_POOL_MS));
    }
    section.difference(TRUE, ON_DOCKER, SUBJECT, goal(GOAL_COMMAND_MS));
    section.times_faster(TRUE, ON_DOCKER, BY_API, None);
    section.times_faster(TRUE, ON_DOCKER, EXEC_BY_CLI, None);
    Ok(section)
}

fn skipped(mut section: Section, name: &str, reason: &str) -> Section {
    section.skipped.push(Skipped { name: name.to_owned(), reason: reason.to_owned() });
    section
}

/// One at a time and everybody in every round: all of them are slow.
async fn makers(
    run: &Run<'_>,
    api: &Api,
    docker: &Docker,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    let mut makers = vec![Maker::Sandbank(api), Maker::Bare(docker), Maker::Pool(api)];
    makers.extend(docker.cli.as_ref().ok().map(Maker::Cli));
    let warm_up = run.scale.warm_up.div_ceil(run.scale.slow_every);
    let rounds = warm_up + run.scale.rounds.div_ceil(run.scale.slow_every);
    run.progress.begin("docker", rounds);
    for round in 0..rounds {
        for maker in turns(&makers, round.abs_diff(warm_up)) {
            let times = maker.once().await?;
            if round >= warm_up {
                times.add_to(samples, maker.name());
            }
        }
        run.progress.step();
    }
    Ok(())
}

async fn runners(
    run: &Run<'_>,
    api: &Api,
    docker: &Docker,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    let native = run.api().create_ready(Network::None).await?;
    let ours = api.create_ready(Network::None).await?;
    let bare = docker.create(Kind::Programs).await?;
    let mut runners = vec![
        Runner::OnDocker(api, &ours),
        Runner::Sandbank(run.api(), &native),
        Runner::Bare(docker, &bare),
    ];
    runners.extend(docker.cli.as_ref().ok().map(|cli| Runner::Cli(cli, &bare)));
    let (warm_up, rounds) = run.rounds_of_several();
    run.progress.begin("docker exec", rounds);
    for round in 0..rounds {
        let kept = round.abs_diff(warm_up);
        for runner in turns(&runners, kept) {
            if runner.is_slow() && !run.slow_take_part(kept) {
                continue;
            }
            for _ in 0..run.scale.in_a_row {
                let took = runner.once().await?;
                if round >= warm_up {
                    samples.add_time(TRUE, runner.name(), took);
                }
            }
        }
        run.progress.step();
    }
    docker.remove(&bare).await?;
    api.destroy(&ours).await?;
    run.api().destroy(&native).await
}

impl Maker<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Sandbank(_) => ON_DOCKER,
            Self::Pool(_) => FROM_POOL,
            Self::Bare(_) => BY_API,
            Self::Cli(_) => BY_CLI,
        }
    }

    async fn once(&self) -> anyhow::Result<Times> {
        match self {
            Self::Sandbank(api) => sandbank(api, api.create(Network::None)).await,
            Self::Pool(api) => from_pool(api).await,
            Self::Bare(docker) => Ok(docker.cycle(Kind::Programs).await?.into()),
            Self::Cli(cli) => Ok(until_input_ends(cli.run()).await?.into()),
        }
    }
}

impl Runner<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Sandbank(..) => SUBJECT,
            Self::OnDocker(..) => ON_DOCKER,
            Self::Bare(..) => BY_API,
            Self::Cli(..) => EXEC_BY_CLI,
        }
    }

    fn is_slow(&self) -> bool {
        matches!(self, Self::Bare(..) | Self::Cli(..))
    }

    async fn once(&self) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        match self {
            Self::Sandbank(api, id) | Self::OnDocker(api, id) => api.run(id, &["true"]).await?,
            Self::Bare(docker, id) => docker.exec(id, &["true"]).await.map(drop)?,
            Self::Cli(cli, id) => {
                let mut command = cli.exec(id, &["true"]);
                return blocking(move || process::run(&mut command)).await;
            }
        }
        Ok(begin.elapsed())
    }
}
