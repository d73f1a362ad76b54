//! One large file into a sandbox and out again.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Run, turns};
use crate::api::Network;
use crate::memory;
use crate::peers::blocking;
use crate::peers::loopback::{self, End};
use crate::report::{Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;

const UP: &str = "file up";
const DOWN: &str = "file down";
const TO_FILE: &str = "loopback TCP into a file";
const FROM_FILE: &str = "loopback TCP from a file";
const TO_WORKSPACES: &str = "loopback TCP into a file beside the workspaces";
const FROM_WORKSPACES: &str = "loopback TCP from a file beside the workspaces";
const MEMORY: &str = "loopback TCP, memory only";
const GOAL: f64 = 0.6;

/// Size of the pieces an upload is sent in.
const PIECE_BYTES: usize = 256 << 10;

const FILE: &str = "/vercel/sandbox/workspace/bench.bin";

#[derive(Clone, Copy)]
enum Contender {
    Sandbank,
    Files,
    Workspaces,
    Memory,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let size = run.scale.file_bytes;
    let method = format!(
        "{} MiB through the raw file routes, one connection. The peer is a plain read and write loop \
         over loopback TCP that ends in, or begins with, a file on the file system below the data \
         directory, and beside it one on the file system that workspaces are on, whose quotas and \
         snapshots have their price. Nobody syncs to disk.",
        size >> 20
    );
    let mut contenders = vec![Contender::Sandbank, Contender::Files, Contender::Memory];
    let pool = run.daemon.data_dir().join("pool");
    contenders.extend(pool.is_dir().then_some(Contender::Workspaces));
    let rounds = 1 + run.scale.long_rounds;
    run.progress.begin("files", rounds * contenders.len());
    let id = run.api().create_ready(Network::None).await?;
    let dir = tempfile::Builder::new().prefix("sandbank-bench-files-").tempdir()?;
    let before = memory::of_process(run.daemon.pid())?;
    memory::reset_peak(run.daemon.pid());
    let mut samples = Samples::default();
    for round in 0..rounds {
        for contender in turns(&contenders, round.abs_diff(1)) {
            let (up, down) = match contender {
                Contender::Sandbank => sandbank(run, &id).await?,
                Contender::Files => plain(End::File(dir.path().join("copy")), size).await?,
                Contender::Workspaces => plain(End::File(pool.join("copy")), size).await?,
                Contender::Memory => plain(End::Memory, size).await?,
            };
            run.progress.step();
            if round > 0 {
                let (to, from) = contender.names();
                samples.add_rate(UP, to, size, up);
                samples.add_rate(DOWN, from, size, down);
            }
        }
    }
    let after = memory::of_process(run.daemon.pid())?;
    run.api().destroy(&id).await?;
    let mut section = Section::new("Files", method);
    section.series = samples.into_series();
    section.compare(UP, SUBJECT, TO_FILE, Some(Goal::AtLeast(GOAL)));
    section.compare(DOWN, SUBJECT, FROM_FILE, Some(Goal::AtLeast(GOAL)));
    section.compare(UP, SUBJECT, TO_WORKSPACES, Some(Goal::AtLeast(GOAL)));
    section.compare(DOWN, SUBJECT, FROM_WORKSPACES, Some(Goal::AtLeast(GOAL)));
    section.compare(UP, SUBJECT, MEMORY, None);
    section.compare(DOWN, SUBJECT, MEMORY, None);
    section.fact("daemon's memory before", before.resident_mb, Unit::Megabytes);
    section.fact("daemon's memory, highest", after.peak_mb, Unit::Megabytes);
    section.fact("daemon's memory after", after.resident_mb, Unit::Megabytes);
    Ok(section)
}

impl Contender {
    /// What the way up and the way down are called.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Sandbank => (SUBJECT, SUBJECT),
            Self::Files => (TO_FILE, FROM_FILE),
            Self::Workspaces => (TO_WORKSPACES, FROM_WORKSPACES),
            Self::Memory => (MEMORY, MEMORY),
        }
    }
}

async fn sandbank(run: &Run<'_>, id: &str) -> anyhow::Result<(Duration, Duration)> {
    let (api, size) = (run.api(), run.scale.file_bytes);
    let piece = Bytes::from(vec![b's'; PIECE_BYTES]);
    let begin = Instant::now();
    api.upload(id, FILE, piece, size).await?;
    let up = begin.elapsed();
    let begin = Instant::now();
    let received = api.download(id, FILE).await?;
    let down = begin.elapsed();
    anyhow::ensure!(received == size, "{received} of {size} bytes came back");
    api.delete_file(id, FILE).await?;
    Ok((up, down))
}

async fn plain(end: End, size: u64) -> anyhow::Result<(Duration, Duration)> {
    blocking(move || {
        let up = loopback::copy(&End::Memory, &end, size)?;
        let down = loopback::copy(&end, &End::Memory, size)?;
        if let End::File(path) = &end {
            std::fs::remove_file(path)?;
        }
        Ok((up, down))
    })
    .await
}
