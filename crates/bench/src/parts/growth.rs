//! What a daemon that has grown does to the sandboxes it makes. Starting a process by copying a
//! large one is slow; whoever starts sandboxes from the daemon itself pays for its memory.

use std::time::Instant;

use super::Run;
use crate::api::Network;
use crate::http::Reply;
use crate::memory;
use crate::report::{Section, Unit};
use crate::samples::Samples;

const READY: &str = "create to ready";
const TRUE: &str = "command true";

/// Output of the command whose readers do not read: more than any of them is sent ahead.
const OUTPUT_BYTES: &str = "4194304";

const METHOD: &str = "Clients open log streams and do not read them, so that the daemon holds what \
    it has read ahead for each. Sandboxes are made and commands run before, with all of them open, \
    and after they are gone. The daemon's memory is what is resident.";

struct Stage {
    name: &'static str,
    resident_mb: f64,
    files: usize,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let count = run.scale.idle_readers;
    run.progress.begin("growth", 3 * run.scale.rounds);
    let id = run.api().create_ready(Network::None).await?;
    let argv = ["head", "-c", OUTPUT_BYTES, "/dev/zero"];
    let command = run.api().start(&id, &argv).await?;
    let mut samples = Samples::default();
    let mut stages = vec![stage(run, &id, "sandbank, small daemon", &mut samples).await?];
    let mut readers: Vec<Reply> = Vec::with_capacity(count);
    for _ in 0..count {
        readers.push(run.api().logs(&id, &command, "base64").await?);
    }
    stages.push(stage(run, &id, "sandbank, grown daemon", &mut samples).await?);
    drop(readers);
    stages.push(stage(run, &id, "sandbank, grown and emptied", &mut samples).await?);
    run.api().destroy(&id).await?;

    let mut section = Section::new("Growth of the daemon", METHOD);
    section.series = samples.into_series();
    let [small, grown, emptied] = &stages[..] else { anyhow::bail!("there are three stages") };
    for measure in [READY, TRUE] {
        section.compare(measure, grown.name, small.name, None);
        section.compare(measure, emptied.name, small.name, None);
    }
    section.fact("streams that nobody reads", count as f64, Unit::Count);
    for stage in &stages {
        section.fact(format!("memory: {}", stage.name), stage.resident_mb, Unit::Megabytes);
    }
    for stage in &stages {
        section.fact(format!("open files: {}", stage.name), stage.files as f64, Unit::Count);
    }
    Ok(section)
}

async fn stage(
    run: &Run<'_>,
    id: &str,
    name: &'static str,
    samples: &mut Samples,
) -> anyhow::Result<Stage> {
    for round in 0..run.scale.warm_up + run.scale.rounds {
        let begin = Instant::now();
        let made = run.api().create_ready(Network::None).await?;
        let ready = begin.elapsed();
        run.api().destroy(&made).await?;
        let begin = Instant::now();
        run.api().run(id, &["true"]).await?;
        if round >= run.scale.warm_up {
            samples.add_time(TRUE, name, begin.elapsed());
            samples.add_time(READY, name, ready);
            run.progress.step();
        }
    }
    let pid = run.daemon.pid();
    let resident_mb = memory::of_process(pid)?.resident_mb;
    Ok(Stage { name, resident_mb, files: memory::open_files(pid) })
}
