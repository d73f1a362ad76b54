//! Create and destroy, one at a time.

use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::peers::{BWRAP, PROCESS, blocking, process};
use crate::report::{Goal, SUBJECT, Section, Skipped};
use crate::samples::Samples;

const ANSWERED: &str = "create request answered";
const READY: &str = "create to ready";
const GONE: &str = "destroy";
const WITH_NETWORK: &str = "sandbank, with network";

const METHOD: &str = "`POST /v1/sandboxes`, then a request that only the sandbox's runner can \
    answer: ready is when that answer is here, so nothing is hidden behind an early reply. \
    The peers start `cat` and are ready when a byte sent to it has come back. Destroyed is when \
    `DELETE` is answered, and for peers when their last process is gone.";

#[derive(Clone, Copy)]
enum Contender {
    Sandbank(Network),
    Bwrap,
    Process,
}

struct Times {
    /// Only of Sandbank, where creating and answering are two requests.
    answered: Option<Duration>,
    ready: Duration,
    gone: Duration,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut section = Section::new("Create and destroy", METHOD);
    let contenders = contenders(run, &mut section).await;
    let rounds = run.scale.warm_up + run.scale.rounds;
    run.progress.begin("create", rounds);
    let mut samples = Samples::default();
    for round in 0..rounds {
        for contender in turns(&contenders, round.abs_diff(run.scale.warm_up)) {
            let times = once(run, *contender).await?;
            if round < run.scale.warm_up {
                continue;
            }
            let who = contender.name();
            if let Some(answered) = times.answered {
                samples.add_time(ANSWERED, who, answered);
            }
            samples.add_time(READY, who, times.ready);
            samples.add_time(GONE, who, times.gone);
        }
        run.progress.step();
    }
    section.series = samples.into_series();
    section.compare(READY, SUBJECT, BWRAP, Some(Goal::AtMost(1.0)));
    section.compare(READY, WITH_NETWORK, BWRAP, None);
    section.compare(READY, SUBJECT, PROCESS, None);
    section.compare(GONE, SUBJECT, BWRAP, None);
    Ok(section)
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Sandbank(Network::None) => SUBJECT,
            Self::Sandbank(Network::Default) => WITH_NETWORK,
            Self::Bwrap => BWRAP,
            Self::Process => PROCESS,
        }
    }
}

async fn contenders(run: &Run<'_>, section: &mut Section) -> Vec<Contender> {
    let mut contenders = vec![Contender::Sandbank(Network::None)];
    match once(run, Contender::Sandbank(Network::Default)).await {
        Ok(_) => contenders.push(Contender::Sandbank(Network::Default)),
        Err(error) => {
            let (name, reason) = (WITH_NETWORK.to_owned(), format!("{error:#}"));
            section.skipped.push(Skipped { name, reason });
        }
    }
    if run.peers.bwrap.is_some() {
        contenders.push(Contender::Bwrap);
    }
    contenders.push(Contender::Process);
    contenders
}

async fn once(run: &Run<'_>, contender: Contender) -> anyhow::Result<Times> {
    let mut command = match (contender, &run.peers.bwrap) {
        (Contender::Sandbank(network), _) => return sandbank(run, network).await,
        (Contender::Bwrap, Some(bwrap)) => bwrap.command(&["cat"]),
        (Contender::Bwrap, None) => anyhow::bail!("bwrap is not here"),
        (Contender::Process, _) => process::bare(&["cat"])?,
    };
    blocking(move || {
        let peer = process::start(&mut command)?;
        let ready = peer.took;
        Ok(Times { answered: None, ready, gone: peer.end()? })
    })
    .await
}

async fn sandbank(run: &Run<'_>, network: Network) -> anyhow::Result<Times> {
    let begin = Instant::now();
    let id = run.api().create(network).await?;
    let answered = begin.elapsed();
    run.api().ask_runner(&id).await?;
    let ready = begin.elapsed();
    let begin = Instant::now();
    run.api().destroy(&id).await?;
    Ok(Times { answered: Some(answered), ready, gone: begin.elapsed() })
}
