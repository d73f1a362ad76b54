//! How long a typed character takes to be shown.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::typing::{self, BETWEEN_KEYS, all_type, one_types};
use super::{Run, turns};
use crate::api::{Api, Network};
use crate::http::{Raw, Reply, within};
use crate::limits;
use crate::log_lines::LogLines;
use crate::peers::docker::Kind;
use crate::report::Section;
use crate::samples::Samples;

const ECHO: &str = "terminal echo";
const ALONE: &str = "sandbank, 1 open";
const DOCKER_ALONE: &str = "Docker, 1 open";

/// Terminals of one sandbox, when there are many.
const PER_SANDBOX: usize = 10;

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
    let (one_types, all_type) = (one_types(count), all_type(count));
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
        typing::keep_typing((number, count), keys, async || terminal.echo(run.api()).await)
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
        typing::figures(&mut section, ECHO, who);
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
}

async fn raw_echo(terminal: &mut Raw) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    terminal.write_all(KEY).await?;
    let mut shown = [0; KEY.len()];
    within(limits::CALL, async { Ok(terminal.read_exact(&mut shown).await?) }).await?;
    Ok(begin.elapsed())
}
