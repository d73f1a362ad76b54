//! Create and destroy, one at a time.

use std::time::{Duration, Instant};

use super::{Run, fill_pool, turns};
use crate::api::{Api, Network};
use crate::peers::{BWRAP, Cycle, DOCKER, NAMES, Peer};
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::samples::Samples;

pub(super) const ANSWERED: &str = "create request answered";
pub(super) const READY: &str = "create to ready";
pub(super) const GONE: &str = "destroy";
const WITH_NETWORK: &str = "sandbank, with network";
const FROM_POOL: &str = "sandbank, from the pool";
const GOAL_AGAINST_DOCKER: f64 = 45.0;
const GOAL_FROM_POOL_MS: f64 = 1.0;

const METHOD: &str = "`POST /v1/sandboxes`, then a request that only the sandbox's runner can \
    answer: ready is when that answer is here, so nothing is hidden behind an early reply. \
    The peers start `cat` and are ready when a byte sent to it has come back; Docker's create and \
    start requests count until the start is answered, whatever runs inside by then. Destroyed is \
    when `DELETE` is answered; for bwrap and the bare process when they are killed and their last \
    process is gone, for crun and runc when `cat` has seen the end of its input and they have \
    removed the container. Everybody's turn is several in a row; Docker has a turn in some of the \
    rounds only. From the pool: the machine was ready when the request came, and the next turn \
    begins when the pool is full again.";

#[derive(Clone, Copy)]
enum Contender<'a> {
    Sandbank(Network),
    Pool,
    Peer(Peer<'a>),
}

pub(super) struct Times {
    /// Only of Sandbank, where creating and answering are two requests.
    answered: Option<Duration>,
    ready: Duration,
    gone: Duration,
}

impl From<Cycle> for Times {
    fn from(Cycle { ready, gone }: Cycle) -> Self {
        Self { answered: None, ready, gone }
    }
}

impl Times {
    pub(super) fn add_to(&self, samples: &mut Samples, who: &str) {
        if let Some(answered) = self.answered {
            samples.add_time(ANSWERED, who, answered);
        }
        samples.add_time(READY, who, self.ready);
        samples.add_time(GONE, who, self.gone);
    }
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut section = Section::new("Create and destroy", METHOD);
    let contenders = contenders(run, &mut section).await;
    let (warm_up, rounds) = run.rounds_of_several();
    run.progress.begin("create", rounds);
    let mut samples = Samples::default();
    for round in 0..rounds {
        let kept = round.abs_diff(warm_up);
        for contender in turns(&contenders, kept) {
            if contender.is_slow() && !run.slow_take_part(kept) {
                continue;
            }
            for _ in 0..run.scale.in_a_row {
                let times = once(run, *contender).await?;
                if round >= warm_up {
                    times.add_to(&mut samples, contender.name());
                }
            }
        }
        run.progress.step();
    }
    section.series = samples.into_series();
    section.times_faster(READY, SUBJECT, DOCKER, Some(Goal::AtLeast(GOAL_AGAINST_DOCKER)));
    for peer in NAMES {
        section.compare(READY, SUBJECT, peer, (peer == BWRAP).then_some(Goal::AtMost(1.0)));
    }
    section.compare(READY, WITH_NETWORK, BWRAP, None);
    if let Some(value) = section.median(ANSWERED, FROM_POOL) {
        let what = format!("{ANSWERED}: {FROM_POOL}");
        section.figure(what, value, Unit::Milliseconds, Goal::AtMost(GOAL_FROM_POOL_MS));
    }
    for peer in NAMES {
        section.compare(GONE, SUBJECT, peer, None);
    }
    Ok(section)
}

impl Contender<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Sandbank(Network::None) => SUBJECT,
            Self::Sandbank(Network::Default) => WITH_NETWORK,
            Self::Pool => FROM_POOL,
            Self::Peer(peer) => peer.name(),
        }
    }

    fn is_slow(&self) -> bool {
        matches!(self, Self::Peer(peer) if peer.is_slow())
    }
}

async fn contenders<'a>(run: &Run<'a>, section: &mut Section) -> Vec<Contender<'a>> {
    let mut contenders = vec![Contender::Sandbank(Network::None), Contender::Pool];
    match once(run, Contender::Sandbank(Network::Default)).await {
        Ok(_) => contenders.push(Contender::Sandbank(Network::Default)),
        Err(error) => {
            let (name, reason) = (WITH_NETWORK.to_owned(), format!("{error:#}"));
            section.skipped.push(Skipped { name, reason });
        }
    }
    contenders.extend(run.peers.all().into_iter().map(Contender::Peer));
    contenders
}

async fn once(run: &Run<'_>, contender: Contender<'_>) -> anyhow::Result<Times> {
    match contender {
        Contender::Sandbank(network) => sandbank(run.api(), run.api().create(network)).await,
        Contender::Pool => from_pool(run.api()).await,
        Contender::Peer(peer) => Ok(peer.cycle().await?.into()),
    }
}

/// A machine that is ready already.
pub(super) async fn from_pool(api: &Api) -> anyhow::Result<Times> {
    fill_pool(api).await?;
    let times = sandbank(api, api.create_from_pool()).await?;
    // What is made in its place must not slow down whoever is next.
    fill_pool(api).await?;
    Ok(times)
}

/// What `create` makes, until it is ready and until it is gone.
pub(super) async fn sandbank(
    api: &Api,
    create: impl Future<Output = anyhow::Result<String>>,
) -> anyhow::Result<Times> {
    let begin = Instant::now();
    let id = create.await?;
    let answered = begin.elapsed();
    api.ask_runner(&id).await?;
    let ready = begin.elapsed();
    let begin = Instant::now();
    api.destroy(&id).await?;
    Ok(Times { answered: Some(answered), ready, gone: begin.elapsed() })
}
