//! Creating and destroying as fast as it goes, with several callers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::peers::{BWRAP, blocking, process};
use crate::report::{Comparison, Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;
use crate::summary::Better;

const CALLERS: [usize; 3] = [1, 4, 8];
const GOAL_PER_SECOND: f64 = 250.0;
const READY: &str = "create to ready";

const METHOD: &str = "Each caller makes a sandbox, has its runner answer, destroys it, and begins \
    again; rates count whole cycles. The peer starts `cat`, sees a byte come back, and kills it.";

#[derive(Clone, Copy)]
struct Contender {
    who: &'static str,
    callers: usize,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut contenders = Vec::new();
    for callers in CALLERS {
        contenders.push(Contender { who: SUBJECT, callers });
        if run.peers.bwrap.is_some() {
            contenders.push(Contender { who: BWRAP, callers });
        }
    }
    let rounds = 1 + run.scale.long_rounds;
    run.progress.begin("throughput", rounds * contenders.len());
    let mut samples = Samples::default();
    for round in 0..rounds {
        for contender in turns(&contenders, round.abs_diff(1)) {
            let begin = Instant::now();
            let times = slice(run, *contender).await?;
            let rate = times.len() as f64 / begin.elapsed().as_secs_f64();
            run.progress.step();
            if round == 0 {
                continue;
            }
            samples.add(&cycle(contender.callers), contender.who, Unit::PerSecond, rate);
            for took in times {
                samples.add_time(&latency(contender.callers), contender.who, took);
            }
        }
    }
    let mut section = Section::new("Throughput", METHOD);
    section.series = samples.into_series();
    let best = CALLERS.iter().filter_map(|callers| section.median(&cycle(*callers), SUBJECT));
    if let Some(value) = best.max_by(f64::total_cmp) {
        section.comparisons.push(Comparison {
            what: "create and destroy: sandbank, best of these".to_owned(),
            value,
            unit: Unit::PerSecond,
            better: Better::Higher,
            goal: Some(Goal::AtLeast(GOAL_PER_SECOND)),
        });
    }
    for callers in CALLERS {
        section.compare(&cycle(callers), SUBJECT, BWRAP, None);
    }
    Ok(section)
}

fn cycle(callers: usize) -> String {
    format!("create and destroy, callers: {callers}")
}

fn latency(callers: usize) -> String {
    format!("{READY}, callers: {callers}")
}

/// Makes and destroys `slice` sandboxes and says how long each took to be ready.
async fn slice(run: &Run<'_>, contender: Contender) -> anyhow::Result<Vec<Duration>> {
    let left = AtomicUsize::new(run.scale.slice);
    let caller = || async {
        let mut times = Vec::new();
        while take_one(&left) {
            times.push(once(run, contender.who).await?);
        }
        anyhow::Ok(times)
    };
    let callers: Vec<_> = (0..contender.callers).map(|_| caller()).collect();
    let mut times = Vec::new();
    for caller in futures_util::future::join_all(callers).await {
        times.extend(caller?);
    }
    Ok(times)
}

fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

async fn once(run: &Run<'_>, who: &str) -> anyhow::Result<Duration> {
    if let (BWRAP, Some(bwrap)) = (who, &run.peers.bwrap) {
        let mut command = bwrap.command(&["cat"]);
        return blocking(move || {
            let peer = process::start(&mut command)?;
            let took = peer.took;
            peer.end().map(|_| took)
        })
        .await;
    }
    let begin = Instant::now();
    let id = run.api().create_ready(Network::None).await?;
    let took = begin.elapsed();
    run.api().destroy(&id).await?;
    Ok(took)
}
