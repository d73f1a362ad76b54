//! A command that prints as fast as it can, and one reader.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandId, CommandSpec, Frame};
use tokio::net::UnixStream;

use super::{Run, turns};
use crate::api::Network;
use crate::log_lines::LogLines;
use crate::memory;
use crate::peers::live::Live;
use crate::peers::{DOCKER, NAMES, PROCESS};
use crate::report::{Goal, Section, Skipped, Unit};
use crate::runner_socket;
use crate::samples::Samples;

const DELIVERED: &str = "log stream, delivered";
const PRODUCED: &str = "log stream, written in the sandbox";
const BASE64: &str = "sandbank, HTTP base64";
const TEXT: &str = "sandbank, HTTP text";
const CHANNEL: &str = "sandbank, channel only";
const GOAL_MB_PER_SECOND: f64 = 700.0;

const METHOD: &str = "`head -c` of `/dev/zero`, for text piped through `tr`, read by one client from \
    start to ending. Delivered counts what reached the reader; where the journal had to drop \
    for a reader that was too slow, what the command wrote is shown as well. The channel is the connection that the daemon itself uses, without HTTP/1.1 and \
    records. The peers' output is read from a pipe, Docker's from the connection of its exec API.";

struct Flow {
    delivered: u64,
    dropped: u64,
    took: Duration,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut section = Section::new("Log stream", METHOD);
    let id = run.api().create_ready(Network::None).await?;
    let socket = runner_socket::of(run.daemon.data_dir(), &id);
    let mut contenders = vec![BASE64, TEXT];
    match &socket {
        Some(_) => contenders.push(CHANNEL),
        None => {
            let reason = "the runner's socket cannot be reached by its path".to_owned();
            section.skipped.push(Skipped { name: CHANNEL.to_owned(), reason });
        }
    }
    let mut lives = Vec::new();
    for peer in run.peers.all() {
        contenders.push(peer.name());
        lives.push(Live::start(peer).await?);
    }

    let rounds = 1 + run.scale.long_rounds;
    run.progress.begin("stream", rounds * contenders.len());
    let pid = run.daemon.pid();
    let before = memory::of_process(pid)?;
    memory::reset_peak(pid);
    let mut samples = Samples::default();
    let mut dropped: Vec<(&str, u64, u64)> = contenders.iter().map(|who| (*who, 0, 0)).collect();
    for round in 0..rounds {
        for who in turns(&contenders, round.abs_diff(1)) {
            let flow = once(run, &id, who, &lives, socket.as_deref()).await.context(*who)?;
            run.progress.step();
            if round == 0 {
                continue;
            }
            let written = flow.delivered + flow.dropped;
            samples.add_rate(DELIVERED, who, flow.delivered, flow.took);
            samples.add_rate(PRODUCED, who, written, flow.took);
            if let Some((_, lost, all)) = dropped.iter_mut().find(|(name, ..)| name == who) {
                *lost += flow.dropped;
                *all += written;
            }
        }
    }
    let after = memory::of_process(pid)?;
    run.api().destroy(&id).await?;
    for live in lives {
        live.end().await?;
    }

    section.series = samples.into_series();
    // Where nothing was dropped both rates are the same.
    let lossless: Vec<_> = dropped.iter().filter(|(_, lost, _)| *lost == 0).map(|d| d.0).collect();
    section.series.retain(|s| s.measure != PRODUCED || !lossless.contains(&s.who.as_str()));
    goals(&mut section);
    for (who, lost, all) in dropped.into_iter().filter(|(who, ..)| !NAMES.contains(who)) {
        let share = 100.0 * lost as f64 / all.max(1) as f64;
        section.fact(format!("dropped for a slow reader: {who}"), share, Unit::Percent);
    }
    section.fact("daemon's memory before", before.resident_mb, Unit::Megabytes);
    section.fact("daemon's memory, highest", after.peak_mb, Unit::Megabytes);
    section.fact("daemon's memory after", after.resident_mb, Unit::Megabytes);
    Ok(section)
}

fn goals(section: &mut Section) {
    for who in [CHANNEL, BASE64] {
        if let Some(value) = section.median(DELIVERED, who) {
            let goal = Goal::AtLeast(GOAL_MB_PER_SECOND);
            let what = format!("{DELIVERED}: {who}");
            section.figure(what, value, Unit::MegabytesPerSecond, goal);
        }
    }
    for who in [BASE64, TEXT, CHANNEL] {
        section.compare(DELIVERED, who, PROCESS, None);
    }
    section.compare(DELIVERED, BASE64, DOCKER, None);
}

async fn once(
    run: &Run<'_>,
    id: &str,
    who: &str,
    lives: &[Live<'_>],
    socket: Option<&Path>,
) -> anyhow::Result<Flow> {
    let total = run.scale.stream_bytes;
    let count = total.to_string();
    let zeros = ["head", "-c", &count, "/dev/zero"];
    let live = lives.iter().find(|live| live.peer.name() == who);
    let flow = match (who, live, socket) {
        (_, Some(live), _) => {
            let (delivered, took) = live.drain(&zeros).await?;
            Flow { delivered, dropped: 0, took }
        }
        (TEXT, ..) => {
            let script = format!("head -c {count} /dev/zero | tr '\\0' s");
            over_http(run, id, &["sh", "-c", &script], "utf8").await?
        }
        (CHANNEL, _, Some(socket)) => over_channel(socket, &zeros).await?,
        _ => over_http(run, id, &zeros, "base64").await?,
    };
    let seen = flow.delivered + flow.dropped;
    anyhow::ensure!(seen == total, "{seen} of {total} bytes are accounted for");
    Ok(flow)
}

async fn over_http(run: &Run<'_>, id: &str, argv: &[&str], encoding: &str) -> anyhow::Result<Flow> {
    let begin = Instant::now();
    let command = run.api().start(id, argv).await?;
    let mut reply = run.api().logs(id, &command, encoding).await?;
    let mut lines = LogLines::new(encoding == "base64");
    while let Some(chunk) = reply.chunk().await? {
        lines.push(&chunk)?;
    }
    let took = begin.elapsed();
    anyhow::ensure!(lines.ended, "the log stream stopped before the command's ending");
    Ok(Flow { delivered: lines.delivered, dropped: lines.dropped, took })
}

async fn over_channel(socket: &Path, argv: &[&str]) -> anyhow::Result<Flow> {
    let (client, _) = RunnerClient::connect(UnixStream::connect(socket).await?).await?;
    let number = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let id: CommandId = format!("bench-{number}").parse()?;
    let spec = CommandSpec::new(id.clone(), argv.iter().map(|word| (*word).to_owned()).collect());
    let begin = Instant::now();
    client.start(&spec).await?;
    let mut output = client.output(&id, 0, true).await?;
    let (mut delivered, mut dropped) = (0, 0);
    while let Some(frame) = output.next().await? {
        match frame {
            Frame::Output { data, .. } => delivered += data.len() as u64,
            Frame::Dropped { bytes, .. } => dropped += bytes,
            Frame::Ended { .. } => break,
            Frame::Heartbeat { .. } => {}
        }
    }
    Ok(Flow { delivered, dropped, took: begin.elapsed() })
}
