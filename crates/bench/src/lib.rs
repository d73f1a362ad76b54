//! Measures Sandbank and its peers on this machine, in one run.
//!
//! The daemon is a private one, started from the same executable on a temporary data directory
//! and removed with everything in it. Contenders take turns, medians count, and nothing here
//! passes or fails on a figure: goals are shown, not asserted.

mod api;
mod caches;
mod daemon;
mod http;
mod limits;
mod log_lines;
mod machine;
mod memory;
mod options;
mod parts;
mod peers;
mod progress;
mod render;
mod report;
mod runner_socket;
mod samples;
mod sources;
mod summary;
mod workspace_modes;

pub use machine::Machine;
pub use options::{Options, Part, UnknownPart};
pub use render::{to_markdown, to_svg, write};
pub use report::{Comparison, Contender, Fact, Goal, Report, Section, Series, Skipped, Unit};
pub use summary::{Better, Summary};

use std::time::{Instant, SystemTime};

use tokio::signal::unix::{Signal, SignalKind, signal};

use daemon::{EngineChoice, PrivateDaemon};
use parts::Run;
use peers::{Peers, docker};
use progress::Progress;

/// A signal ended the run; what it had made is removed.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; the private daemon and its sandboxes are removed")]
pub struct Interrupted;

/// Sandboxes beside those of the largest part that may exist at one time.
const SPARE_SANDBOXES: usize = 64;

/// Runs the benchmark. Interrupted or failed, it removes what it made all the same.
pub async fn run(options: Options) -> anyhow::Result<Report> {
    let begin = Instant::now();
    // From here on a signal ends the run in order, even while the daemon starts.
    let mut interrupts = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
    let load_before = machine::load_average();
    let progress = Progress::new();
    progress.begin("peers", 0);
    let peers = tokio::select! {
        peers = Peers::find() => peers?,
        reason = interrupted(&mut interrupts) => return Err(reason),
    };
    let scale = options.scale();
    let room = scale.density.max(scale.at_once) + SPARE_SANDBOXES;
    let daemon = PrivateDaemon::start(&options.binary, EngineChoice::Native, room).await;
    let daemon = match daemon {
        Ok(daemon) => daemon,
        Err(error) => {
            peers.finish().await?;
            return Err(error);
        }
    };
    let machine = Machine::describe(daemon.data_dir(), load_before);
    let on_docker = on_docker(&options, &peers).await;
    let run = Run {
        scale,
        binary: &options.binary,
        daemon: &daemon,
        on_docker: on_docker.as_ref().map_err(String::as_str),
        peers: &peers,
        progress: &progress,
    };
    let outcome = tokio::select! {
        outcome = sections(&options, &run) => outcome,
        reason = interrupted(&mut interrupts) => Err(reason),
    };
    progress.end();
    let finished = daemon.finish().await;
    // Before the Docker daemon, which has its sandboxes.
    let finished = match on_docker {
        Ok(on_docker) => on_docker.finish().await.and(finished),
        Err(_) => finished,
    };
    let (contenders, skipped) = (peers.contenders(), peers.skipped.clone());
    let peers_finished = peers.finish().await;
    let sections = outcome?;
    finished?;
    peers_finished?;
    Ok(Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: cfg!(debug_assertions),
        quick: options.quick,
        measured_on: today(),
        command: options.command_line(),
        machine,
        contenders,
        skipped,
        unmeasured: unmeasured(&options),
        sections,
        took_s: begin.elapsed().as_secs_f64(),
    })
}

/// A daemon whose sandboxes are containers, or why there is none.
async fn on_docker(options: &Options, peers: &Peers) -> Result<PrivateDaemon, String> {
    if ![Part::Docker, Part::AtOnce].iter().any(|part| options.wants(*part)) {
        return Err("no part of this run needs it".to_owned());
    }
    let docker = peers.docker().ok_or("there is no private Docker daemon")?;
    let socket = docker.socket();
    let engine = EngineChoice::Docker { socket: &socket, image: docker::PROGRAMS };
    let started = PrivateDaemon::start(&options.binary, engine, SPARE_SANDBOXES).await;
    started.map_err(|error| format!("{error:#}"))
}

async fn sections(options: &Options, run: &Run<'_>) -> anyhow::Result<Vec<Section>> {
    let mut sections = Vec::new();
    for part in Part::ALL.into_iter().filter(|part| options.wants(*part)) {
        sections.push(run.measure(part).await?);
    }
    Ok(sections)
}

async fn interrupted([interrupt, terminate]: &mut [Signal; 2]) -> anyhow::Error {
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    Interrupted.into()
}

/// Goals of the performance budget that have nothing to measure, or were left out.
fn unmeasured(options: &Options) -> Vec<Skipped> {
    let nothing = [("fork of a workspace", "this version does not fork")];
    let nothing = nothing.map(|(name, reason)| (name.to_owned(), reason));
    let left_out = Part::ALL.into_iter().filter(|part| !options.wants(*part));
    let left_out = left_out.map(|part| (part.name().to_owned(), "this run left the part out"));
    let all = nothing.into_iter().chain(left_out);
    all.map(|(name, reason)| Skipped { name, reason: reason.to_owned() }).collect()
}

/// `Sun, 15 Nov 2026`.
fn today() -> String {
    let date = httpdate::fmt_http_date(SystemTime::now());
    date.chars().take("Sun, 15 Nov 2026".len()).collect()
}
