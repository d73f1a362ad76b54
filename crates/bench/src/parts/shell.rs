//! A builtin in the shell that remembers, and sessions, which are made of one.

use std::time::{Duration, Instant};

use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandSpec, CommandState, Ending, ShellUse};
use tokio::net::UnixStream;

use super::{Run, turns};
use crate::api::Network;
use crate::report::{Goal, SUBJECT, Section, Skipped, Unit};
use crate::runner_socket;
use crate::samples::Samples;

const BUILTIN: &str = "builtin in a shell that remembers";
const CREATED: &str = "session created";
const CHANNEL: &str = "sandbank, channel only";
const SESSIONS: &str = "sandbank, sessions API";
const GOAL_HTTP_MS: f64 = 1.5;
const GOAL_RUNNER_MS: f64 = 0.5;
const GOAL_CREATED_MS: f64 = 1.0;

const METHOD: &str = "`:` in a shell, from the first byte sent to the exit code in hand: by our own \
    API, by the sessions API of Sandkasten's clients, and over the channel that the daemon itself \
    uses, which is the runner's part. A session comes from the pool, as `acquire_source` says, and \
    is created when `POST /v1/sessions` is answered. Sandkasten itself cannot be had here; what its \
    documents and its source say is shown beside: it looks for output every 50 ms.";

/// As its documents and its source have it, in milliseconds.
const SANDKASTEN: [(&str, f64); 3] = [
    ("Sandkasten's own word: an exec takes at least", 50.0),
    ("Sandkasten's own word: a session from its pool takes at least", 50.0),
    ("Sandkasten's own word: a session without a pool takes up to", 450.0),
];

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut section = Section::new("Shell and sessions", METHOD);
    let (warm_up, rounds) = run.rounds_of_several();
    run.progress.begin("shell", rounds);
    let id = run.api().create_ready(Network::None).await?;
    let session = run.api().create_session().await?;
    let runner = match runner_socket::of(run.daemon.data_dir(), &id) {
        Some(socket) => Some(RunnerClient::connect(UnixStream::connect(socket).await?).await?.0),
        None => {
            let reason = "the runner's socket cannot be reached by its path".to_owned();
            section.skipped.push(Skipped { name: CHANNEL.to_owned(), reason });
            None
        }
    };
    let mut contenders = vec![(SUBJECT, BUILTIN), (SESSIONS, BUILTIN), (SESSIONS, CREATED)];
    contenders.extend(runner.is_some().then_some((CHANNEL, BUILTIN)));
    let mut samples = Samples::default();
    for round in 0..rounds {
        for (who, what) in turns(&contenders, round.abs_diff(warm_up)) {
            for _ in 0..run.scale.in_a_row {
                let took = match (*who, *what, &runner) {
                    (SUBJECT, ..) => timed(run.api().evaluate(&id, ":")).await?,
                    (_, CREATED, _) => created(run).await?,
                    (CHANNEL, _, Some(runner)) => timed(over_channel(runner)).await?,
                    _ => timed(run.api().exec_in_session(&session, ":")).await?,
                };
                if round >= warm_up {
                    samples.add_time(what, who, took);
                }
            }
        }
        run.progress.step();
    }
    run.api().destroy_session(&session).await?;
    run.api().destroy(&id).await?;
    section.series = samples.into_series();
    for (what, who, goal) in [
        (BUILTIN, CHANNEL, GOAL_RUNNER_MS),
        (BUILTIN, SUBJECT, GOAL_HTTP_MS),
        (BUILTIN, SESSIONS, GOAL_HTTP_MS),
        (CREATED, SESSIONS, GOAL_CREATED_MS),
    ] {
        if let Some(value) = section.median(what, who) {
            let what = format!("{what}: {who}");
            section.figure(what, value, Unit::Milliseconds, Goal::AtMost(goal));
        }
    }
    for (what, milliseconds) in SANDKASTEN {
        section.fact(what, milliseconds, Unit::Milliseconds);
    }
    Ok(section)
}

async fn timed(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work.await?;
    Ok(begin.elapsed())
}

async fn created(run: &Run<'_>) -> anyhow::Result<Duration> {
    run.fill_pool().await?;
    let begin = Instant::now();
    let session = run.api().create_session().await?;
    let took = begin.elapsed();
    run.api().destroy_session(&session).await?;
    run.fill_pool().await?;
    Ok(took)
}

async fn over_channel(runner: &RunnerClient) -> anyhow::Result<()> {
    let number = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let spec = CommandSpec {
        shell: Some(ShellUse { name: "bench".parse()?, merged: false, begin_in: None }),
        ..CommandSpec::new(format!("bench-{number}").parse()?, vec![":".to_owned()])
    };
    let started = runner.start_and_wait(&spec, Duration::from_secs(5)).await?;
    let state = started.status.state;
    let succeeded =
        matches!(&state, CommandState::Ended { ending: Ending::Exited { code: 0 }, .. });
    anyhow::ensure!(succeeded, "`:` ended as {state:?}");
    Ok(())
}
