//! `sandbank serve`: the daemon in the foreground, until it is told to stop.

use std::io::IsTerminal;

use clap::Args;
use sandbank_engine::Standing;
use sandbank_engine_native::give_back_freed_memory;
use sandbank_orchestrator::containment::SelfTest;
use sandbank_server::TokenFile;
use sandbank_server::config::{self, ConfigFlags, Settings, Sources};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::daemon::{Daemon, DataDir, Holder, bad_config, bad_token_file, check_workspace, holder};
use crate::failure::Failure;
use crate::limits::MEMORY_INTERVAL;
use crate::log;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank serve
  sandbank serve --port 9000 --data-dir /srv/sandbank
  sandbank serve --check                  would it start?
  SANDBANK_LOG=debug sandbank serve

Every setting is a flag, an environment variable and a key of the configuration file; the flag
wins. Ctrl-C or SIGTERM stops the server after running requests have ended, a second one at once.
Sandboxes keep running, and the next start finds them again.")]
pub(crate) struct ServeArgs {
    /// Check configuration, data directory, port and machine, then leave
    #[arg(long)]
    pub(crate) check: bool,
    /// Test containment even if nothing has changed since the last test
    #[arg(long, hide = true)]
    pub(crate) self_test: bool,
    #[command(flatten)]
    pub(crate) flags: ConfigFlags,
}

pub(crate) async fn run(context: &Context, args: ServeArgs) -> Result<u8, Failure> {
    let sources = Sources::of_this_process(args.flags);
    let settings = config::load(&sources).map_err(|error| bad_config(&error))?;
    if args.check {
        return check(context, settings).await;
    }
    let traces = settings.traces.as_ref().map(log::traces).transpose()?;
    let traces = log::for_server(&settings.log, traces.as_ref())?;
    for notice in &settings.notices {
        tracing::warn!("{notice}");
    }
    let data_dir = DataDir::take(&settings.data_dir)?;
    let token = TokenFile::open(data_dir.path()).map_err(|error| bad_token_file(&error))?;
    let test = SelfTest { always: args.self_test, only_one: false };
    // Before the first part starts: a signal during a slow start must not kill it half-way.
    let mut stop = Stop::listen()?;
    let leaving = CancellationToken::new();
    let starting = Daemon::start(settings, data_dir, None, Some(test), &token.token, &leaving);
    let Some(mut daemon) = start(starting, &leaving, &mut stop).await? else { return Ok(0) };
    let url = daemon.url();
    daemon.data_dir().announce_server(&url)?;
    tracing::info!(url, version = env!("CARGO_PKG_VERSION"), "ready");
    if std::io::stdout().is_terminal() && !context.ui.json {
        welcome(context, &daemon, &token).await?;
    }
    let shutdown = daemon.shutdown().clone();
    let stopping = tokio::spawn(async move {
        stop.asked().await;
        tracing::info!("stopping; running requests may finish, sandboxes go on");
        shutdown.drain();
        stop.asked().await;
        tracing::warn!("stopping at once");
        shutdown.force();
    });
    let tidying = tokio::spawn(tidy_memory());
    let finished = daemon.finish().await;
    stopping.abort();
    tidying.abort();
    if let Some(traces) = traces {
        traces.end().await;
    }
    finished.map(|()| 0)
}

/// What a rush of large transfers needed is not the daemon's for ever.
async fn tidy_memory() {
    let mut free = 0;
    loop {
        tokio::time::sleep(MEMORY_INTERVAL).await;
        let looked = tokio::task::spawn_blocking(move || give_back_freed_memory(free)).await;
        free = looked.unwrap_or(free);
    }
}

/// None when told to stop meanwhile; what has been started by then is stopped, unless told again.
async fn start(
    starting: impl Future<Output = Result<Daemon, Failure>>,
    leaving: &CancellationToken,
    stop: &mut Stop,
) -> Result<Option<Daemon>, Failure> {
    tokio::pin!(starting);
    tokio::select! {
        daemon = &mut starting => return daemon.map(Some),
        () = stop.asked() => leaving.cancel(),
    }
    let stopping = async {
        match starting.await {
            Ok(daemon) => {
                daemon.shutdown().force();
                daemon.finish().await
            }
            Err(failure) => Err(failure),
        }
    };
    tokio::select! {
        stopped = stopping => stopped.map(|()| None),
        () = stop.asked() => Ok(None),
    }
}

/// Everything that can fail without changing anything: what a start would fail for.
async fn check(context: &Context, settings: Settings) -> Result<u8, Failure> {
    let running = match holder(&settings.data_dir) {
        Holder::Server(url) => Some(url),
        _ => None,
    };
    // A server that runs has the directory and the port already.
    let _taken = match &running {
        Some(_) => None,
        None => {
            let taken = DataDir::take(&settings.data_dir)?;
            Daemon::check_listener(settings.server.bind).await?;
            Some(taken)
        }
    };
    let missing = super::doctor::missing_controls(&settings, &settings.data_dir).await?;
    for notice in &settings.notices {
        context.ui.note(notice);
    }
    if let Some(problem) = check_workspace(&settings).await? {
        context.ui.note(&problem.to_string());
    }
    if let Some(first) = missing.first() {
        return Err(super::doctor::lacks(first, missing.len()));
    }
    context.ui.line(&match running {
        Some(url) => format!("everything is in order; a server runs with this directory at {url}"),
        None => "everything is ready for `sandbank serve`".to_owned(),
    })?;
    Ok(0)
}

async fn welcome(context: &Context, daemon: &Daemon, token: &TokenFile) -> Result<(), Failure> {
    let ui = &context.ui;
    let sandboxes = daemon.orchestrator().list().await.len();
    let reports = daemon.orchestrator().engine().controls().await;
    let lacking: Vec<&str> = reports
        .iter()
        .filter(|report| report.standing != Standing::InForce)
        .map(|report| report.control.name())
        .collect();
    let controls = match lacking.as_slice() {
        [] => format!("all {} in force", reports.len()),
        some => format!("not in force: {}; see `sandbank doctor`", some.join(", ")),
    };
    let rows = [
        ("address", daemon.url()),
        ("token", format!("{} (`sandbank token` prints it)", token.path.display())),
        ("sandboxes", format!("{sandboxes} taken up")),
        ("controls", controls),
    ];
    ui.line(&format!("\n{}\n", ui.bold("Sandbank is ready.")))?;
    for (name, value) in rows {
        ui.line(&format!("  {} {value}", ui.bold(&format!("{name:<10}"))))?;
    }
    let url = daemon.url();
    ui.line("\nTry in another terminal:")?;
    ui.line("  sandbank run -- python3 -c 'print(6 * 7)'")?;
    ui.line("  sandbank shell")?;
    ui.line(&format!("  curl {url}/v1/health"))?;
    ui.line("\nCtrl-C stops the server; sandboxes keep running.\n")
}

/// SIGTERM and Ctrl-C, one after the other.
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::io("listen for signals"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
