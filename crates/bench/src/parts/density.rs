//! Many idle sandboxes at once: what each costs, and what their number does to everything else.

use std::time::{Duration, Instant};

use super::Run;
use crate::api::Network;
use crate::memory;
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::samples::Samples;

const READY: &str = "create to ready";
const TRUE: &str = "command true";
const LIST: &str = "list all sandboxes";

/// Into so many equal steps the way up is divided, where the scale names none.
const STEPS: usize = 5;
const GOAL_MB: f64 = 1.0;

/// Memory that must be free for each sandbox that is still to be made, and beside them.
const ROOM_EACH_MB: f64 = 1.5;
const ROOM_MB: f64 = 500.0;

/// Looks at the machine's free memory, of which the median counts.
const LOOKS: usize = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Sandboxes whose cgroup is asked for its memory.
const ASKED: usize = 50;

const METHOD: &str = "Sandboxes are made one after another and left idle. Memory each is the \
    machine's loss of `MemAvailable`, with the daemon's share, divided by their number. On the way, \
    commands and listings are timed again.";

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let count = run.scale.density;
    let mut section = Section::new("Density and growth", METHOD);
    run.progress.begin("density", count);
    let pid = run.daemon.pid();
    let daemon_before = memory::of_process(pid)?;
    let files_before = memory::open_files(pid);
    let before = settled_mb().await?;
    let begin = Instant::now();
    let mut alive = Vec::with_capacity(count);
    let mut samples = Samples::default();
    let mut making = Duration::ZERO;
    let mut each = Vec::new();
    for until in looks(run) {
        let needed = (until - alive.len()) as f64 * ROOM_EACH_MB + ROOM_MB;
        let free = memory::available_mb()?;
        if free < needed {
            let name = format!("{until} sandboxes");
            let reason = format!("{free:.0} MB of memory are free, {needed:.0} MB might be needed");
            section.skipped.push(Skipped { name, reason });
            break;
        }
        let who = format!("{SUBJECT}, up to {until} alive");
        while alive.len() < until {
            let begin = Instant::now();
            alive.push(run.api().create_ready(Network::None).await?);
            making += begin.elapsed();
            samples.add_time(READY, &who, begin.elapsed());
            run.progress.step();
        }
        probe(run, &alive, &mut samples, &who).await?;
        each.push((until, (before - settled_mb().await?) / until as f64));
    }
    let took = begin.elapsed();
    let daemon_after = memory::of_process(pid)?;
    let files = memory::open_files(pid);
    let cgroup = cgroup_mb(run, &alive).await?;
    let begin = Instant::now();
    for id in &alive {
        run.api().destroy(id).await?;
    }
    let removing = begin.elapsed();
    let recovered = settled_mb().await?;

    section.series = samples.into_series();
    for (count, mb) in each {
        let what = format!("memory of an idle sandbox, {count} alive");
        section.figure(what, mb, Unit::Megabytes, Goal::AtMost(GOAL_MB));
    }
    growth(&mut section);
    section.fact("sandboxes", alive.len() as f64, Unit::Count);
    section.fact(
        "made per second, one after another",
        alive.len() as f64 / making.as_secs_f64(),
        Unit::PerSecond,
    );
    section.fact("whole way up, with probes", took.as_secs_f64(), Unit::Seconds);
    section.fact("removing all, one after another", removing.as_secs_f64(), Unit::Seconds);
    section.fact("memory each, by its cgroup", cgroup, Unit::Megabytes);
    section.fact("memory not recovered after removal", before - recovered, Unit::Megabytes);
    section.fact("daemon's memory before", daemon_before.resident_mb, Unit::Megabytes);
    section.fact("daemon's memory with all alive", daemon_after.resident_mb, Unit::Megabytes);
    section.fact("daemon's open files before", files_before as f64, Unit::Count);
    section.fact("daemon's open files with all alive", files as f64, Unit::Count);
    Ok(section)
}

/// How many are alive when everything is looked at, each more than the one before.
fn looks(run: &Run<'_>) -> Vec<usize> {
    let mut looks = match run.scale.looks {
        [] => (1..=STEPS).map(|step| run.scale.density * step / STEPS).collect(),
        named => named.to_vec(),
    };
    looks.retain(|look| *look > 0);
    looks.dedup();
    looks
}

/// Short measurements with some of the sandboxes that are alive.
async fn probe(
    run: &Run<'_>,
    alive: &[String],
    samples: &mut Samples,
    who: &str,
) -> anyhow::Result<()> {
    for id in alive.iter().rev().cycle().take(run.scale.probes) {
        let begin = Instant::now();
        run.api().run(id, &["true"]).await?;
        samples.add_time(TRUE, who, begin.elapsed());
        let begin = Instant::now();
        let listed = run.api().sandboxes().await?.len();
        samples.add_time(LIST, who, begin.elapsed());
        anyhow::ensure!(listed == alive.len(), "{listed} of {} are listed", alive.len());
    }
    Ok(())
}

/// The last step's median against the first one's.
fn growth(section: &mut Section) {
    for measure in [READY, TRUE] {
        let rows = section.series.iter().filter(|series| series.measure == measure);
        let names: Vec<String> = rows.map(|series| series.who.clone()).collect();
        if let [first, .., last] = &names[..] {
            section.compare(measure, last, first, None);
        }
    }
}

async fn settled_mb() -> anyhow::Result<f64> {
    let mut looks = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        looks.push(memory::available_mb()?);
    }
    looks.sort_by(f64::total_cmp);
    Ok(looks[LOOKS / 2])
}

async fn cgroup_mb(run: &Run<'_>, alive: &[String]) -> anyhow::Result<f64> {
    let asked = &alive[..alive.len().min(ASKED)];
    let mut total = 0.0;
    for id in asked {
        total += run.api().memory_bytes(id).await? as f64 / 1e6;
    }
    Ok(total / asked.len().max(1) as f64)
}
