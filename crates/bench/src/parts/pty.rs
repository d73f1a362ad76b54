//! How long a typed character takes to be shown in the workspace's terminals, over `/ws/pty`.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::Run;
use super::typing::{self, BETWEEN_KEYS, all_type, one_types};
use crate::daemon::PrivateDaemon;
use crate::http::within;
use crate::limits;
use crate::report::Section;
use crate::samples::Samples;
use crate::workspace_modes::{Mode, Places};

const ECHO: &str = "workspace terminal echo";

/// Keys of each, when everybody types, are this fraction of the rounds.
const TYPISTS: usize = 10;

struct Terminal(WebSocketStream<MaybeTlsStream<TcpStream>>);

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let rounds = run.scale.warm_up + run.scale.rounds;
    run.progress.begin("pty", rounds);
    let places = Places::prepare(run.binary).await?;
    let measured = in_sandbox(run, &places, rounds).await;
    let finished = places.finish().await;
    let samples = measured?;
    finished?;

    let count = run.scale.terminals;
    let mut section = Section::new("Workspace terminals", method(count));
    section.series = samples.into_series();
    for who in [one_types(count), all_type(count)] {
        typing::figures(&mut section, ECHO, &who);
    }
    Ok(section)
}

fn method(count: usize) -> String {
    format!(
        "`cat` on {count} terminals of the workspace's one sandbox, each with a WebSocket of its own. \
         One character is sent as a frame; shown is when the frame with it has come. One types at a \
         time, and then all type, a character every {} ms each.",
        BETWEEN_KEYS.as_millis()
    )
}

async fn in_sandbox(run: &Run<'_>, places: &Places, rounds: usize) -> anyhow::Result<Samples> {
    let count = run.scale.terminals;
    let settings: [(&str, OsString); 3] = [
        ("SANDBANK_PTY_SHELL_COMMAND", "cat".into()),
        ("SANDBANK_PTY_MAX_SESSIONS", count.to_string().into()),
        ("SANDBANK_WORKSPACE_CONNECTS_PER_SECOND", "0".into()),
    ];
    let (daemon, _) = places.start_with(Mode::Sandbox, &settings).await?;
    let typed = type_in(run, &daemon, rounds).await;
    daemon.finish().await?;
    typed
}

async fn type_in(run: &Run<'_>, daemon: &PrivateDaemon, rounds: usize) -> anyhow::Result<Samples> {
    let count = run.scale.terminals;
    let mut samples = Samples::default();
    let mut terminals = Vec::with_capacity(count);
    for _ in 0..count {
        terminals.push(Terminal::open(daemon).await?);
    }
    for round in 0..rounds {
        let took = terminals[round % count].echo().await?;
        if round >= run.scale.warm_up {
            samples.add_time(ECHO, &one_types(count), took);
        }
        run.progress.step();
    }
    let keys = rounds.div_ceil(TYPISTS);
    let typists = terminals.iter_mut().enumerate().map(|(number, terminal)| {
        typing::keep_typing((number, count), keys, async || terminal.echo().await)
    });
    for took in try_join_all(typists).await?.into_iter().flatten() {
        samples.add_time(ECHO, &all_type(count), took);
    }
    Ok(samples)
}

impl Terminal {
    async fn open(daemon: &PrivateDaemon) -> anyhow::Result<Self> {
        let request = daemon.upgrade("/ws/pty?provider=shell")?;
        let mut terminal =
            Self(within(limits::CALL, async { Ok(connect_async(request).await?) }).await?.0);
        let first = terminal.frame().await?;
        anyhow::ensure!(first["type"] == "session", "a terminal began with {first}");
        Ok(terminal)
    }

    async fn frame(&mut self) -> anyhow::Result<Value> {
        loop {
            let next = within(limits::CALL, async { Ok(self.0.next().await) }).await?;
            let message = next.ok_or_else(|| anyhow::anyhow!("the terminal ended"))??;
            if let Message::Text(text) = message {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }

    /// Nothing but what is typed is ever shown.
    async fn echo(&mut self) -> anyhow::Result<Duration> {
        let key = json!({ "type": "input", "data": "k" }).to_string();
        let begin = Instant::now();
        self.0.send(Message::text(key)).await?;
        loop {
            let frame = self.frame().await?;
            match frame["type"].as_str() {
                Some("output") if frame["data"] == "k" => return Ok(begin.elapsed()),
                Some("history") => {}
                _ => anyhow::bail!("a terminal said {frame}"),
            }
        }
    }
}
