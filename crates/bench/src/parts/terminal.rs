//! How long a typed character takes to be shown.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Run, turns};
use crate::api::{Api, Network};
use crate::http::{Raw, Reply, within};
use crate::limits;
use crate::log_lines::LogLines;
use crate::peers::docker::Kind;
use crate::report::{Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;

const ECHO: &str = "terminal echo";
const ALONE: &str = "sandbank, 1 open";
const DOCKER_ALONE: &str = "Docker, 1 open";
const GOAL_P50_MS: f64 = 2.0;
const GOAL_P99_MS: f64 = 10.0;

/// Terminals of one sandbox, when there are many.
const PER_SANDBOX: usize = 10;

/// Between two characters of each, when everybody types.
const BETWEEN_KEYS: Duration = Duration::from_millis(100);

/// What is typed. The terminal shows it at once, `cat` never sees the end of a line.
const KEY: &[u8] = b"k";

/// Reads what is typed and leaves the showing to the terminal.
const PROGRAM: [&str; 1] = ["cat"];

struct Terminal {
    sandbox: String,
    command: String,
    screen: Reply,
    lines: LogLines,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let count = run.scale.terminals;
    let rounds = run.scale.warm_up + run.scale.rounds;
    run.progress.begin("terminal", 2 * rounds);
    let mut samples = Samples::default();
    alone(run, rounds, &mut samples).await?;

    let mut sandboxes = Vec::new();
    let mut terminals = Vec::with_capacity(count);
    while terminals.len() < count {
        let id = run.api().create_ready(Network::None).await?;
        for _ in 0..PER_SANDBOX.min(count - terminals.len()) {
            terminals.push(Terminal::open(run.api(), &id).await?);
        }
        sandboxes.push(id);
    }
    let one_types = format!("{SUBJECT}, {count} open, one types");
    let all_type = format!("{SUBJECT}, {count} open, all type");
    for round in 0..rounds {
        let took = terminals[round % count].echo(run.api()).await?;
        if round >= run.scale.warm_up {
            samples.add_time(ECHO, &one_types, took);
        }
        run.progress.step();
    }
    let keys = rounds.div_ceil(PER_SANDBOX);
    let typists = terminals.iter_mut().enumerate();
    let typists = typists.map(|(number, terminal)| {
        let offset = BETWEEN_KEYS * number as u32 / count as u32;
        terminal.type_for_a_while(run, keys, offset)
    });
    for took in try_join_all(typists).await?.into_iter().flatten() {
        samples.add_time(ECHO, &all_type, took);
    }
    drop(terminals);
    for id in sandboxes {
        run.api().destroy(&id).await?;
    }

    let mut section = Section::new("Terminal echo", method(count));
    section.series = samples.into_series();
    for who in [ALONE, &one_types, &all_type] {
        let Some(summary) = section.summary(ECHO, who).copied() else { continue };
        let (p50, p99) = (Goal::AtMost(GOAL_P50_MS), Goal::AtMost(GOAL_P99_MS));
        section.figure(format!("{ECHO}, p50: {who}"), summary.p50, Unit::Milliseconds, p50);
        section.figure(format!("{ECHO}, p99: {who}"), summary.p99, Unit::Milliseconds, p99);
    }
    section.compare(ECHO, ALONE, DOCKER_ALONE, None);
    Ok(section)
}

fn method(count: usize) -> String {
    format!(
        "`cat` on a terminal, at most {PER_SANDBOX} of them in a sandbox, each with an open log \
         stream. One character is posted to its input; shown is when it has come out of the stream. \
         With {count} open, one types at a time, and then all type, a character every {} ms each. \
         Docker's is an exec with a terminal, typed at through the same connection that shows it.",
        BETWEEN_KEYS.as_millis()
    )
}

/// One terminal of ours and one of Docker's, in turns.
async fn alone(run: &Run<'_>, rounds: usize, samples: &mut Samples) -> anyhow::Result<()> {
    let id = run.api().create_ready(Network::None).await?;
    let mut ours = Terminal::open(run.api(), &id).await?;
    let mut theirs: Option<(String, Raw)> = None;
    if let Some(docker) = run.peers.docker() {
        let container = docker.create(Kind::Host).await?;
        let terminal = docker.terminal(&container, &PROGRAM).await?;
        theirs = Some((container, terminal));
    }
    let contenders = [ALONE, DOCKER_ALONE];
    for round in 0..rounds {
        for who in turns(&contenders, round.abs_diff(run.scale.warm_up)) {
            let took = match &mut theirs {
                Some((_, terminal)) if *who == DOCKER_ALONE => raw_echo(terminal).await?,
                _ if *who == DOCKER_ALONE => continue,
                _ => ours.echo(run.api()).await?,
            };
            if round >= run.scale.warm_up {
                samples.add_time(ECHO, who, took);
            }
        }
        run.progress.step();
    }
    drop(ours);
    run.api().destroy(&id).await?;
    if let (Some(docker), Some((container, terminal))) = (run.peers.docker(), theirs) {
        drop(terminal);
        docker.remove(&container).await?;
    }
    Ok(())
}

impl Terminal {
    async fn open(api: &Api, sandbox: &str) -> anyhow::Result<Self> {
        let command = api.start_terminal(sandbox, &PROGRAM).await?;
        let screen = api.logs(sandbox, &command, "base64").await?;
        let sandbox = sandbox.to_owned();
        Ok(Self { sandbox, command, screen, lines: LogLines::new(true) })
    }

    async fn echo(&mut self, api: &Api) -> anyhow::Result<Duration> {
        // Nothing but what is typed is ever shown, so the two lengths are one.
        let typed = self.lines.delivered;
        let shown = typed + KEY.len() as u64;
        let begin = Instant::now();
        // The answer to the post may come after what was typed is shown.
        let typing = api.type_in(&self.sandbox, &self.command, typed, KEY);
        let showing = async {
            while self.lines.delivered < shown {
                let chunk = self.screen.chunk().await?;
                let chunk = chunk.ok_or_else(|| anyhow::anyhow!("the terminal ended"))?;
                self.lines.push(&chunk)?;
            }
            anyhow::Ok(begin.elapsed())
        };
        let ((), took) = within(limits::CALL, async { tokio::try_join!(typing, showing) }).await?;
        Ok(took)
    }

    async fn type_for_a_while(
        &mut self,
        run: &Run<'_>,
        keys: usize,
        offset: Duration,
    ) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(keys);
        let mut clock =
            tokio::time::interval_at(tokio::time::Instant::now() + offset, BETWEEN_KEYS);
        for _ in 0..keys {
            clock.tick().await;
            times.push(self.echo(run.api()).await?);
        }
        Ok(times)
    }
}

async fn raw_echo(terminal: &mut Raw) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    terminal.write_all(KEY).await?;
    let mut shown = [0; KEY.len()];
    within(limits::CALL, async { Ok(terminal.read_exact(&mut shown).await?) }).await?;
    Ok(begin.elapsed())
}
