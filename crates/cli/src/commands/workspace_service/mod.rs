//! `sandbank workspace-service`: a directory of this machine, served to a control plane on another.

mod probe;
mod traces;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sandbank_server::config::{LogFormat, LogSettings};
use sandbank_workspace::service::{Service, ServiceTls};
use sandbank_workspace::{API_VERSION, KeyFile, LocalPlace, LocalSettings, Place, Problem};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::daemon::unusable;
use crate::failure::{Exit, Failure};
use crate::log;
use traces::TraceArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  openssl rand -hex 32 >/etc/sandbank/workspace.secret && chmod 600 /etc/sandbank/workspace.secret
  sandbank workspace-service --root /srv/project --secret-file /etc/sandbank/workspace.secret
  sandbank workspace-service --root /srv/project --secret-file … --listen 0.0.0.0:8787 \\
      --tls-cert /etc/sandbank/tls.pem --tls-key /etc/sandbank/tls.key
  sandbank workspace-service … --check                  would it start?
  sandbank workspace-service … --stop-runner            end what is left of it
  sandbank workspace-service --secret-file … --probe http://10.0.0.7:8787
  curl http://127.0.0.1:8787/healthz

Whoever has the secret works in that directory as the user who starts this, with that user's rights
and nothing between: give it a user of its own. Requests are signed, not encrypted; over a network
that others can listen to, use TLS.

The secret file holds one secret per line, of 32 characters or more. The first signs, all are
accepted. To exchange one: add the new one below on both sides, move it to the top on both, take the
old one away. The file is read again when it changes, and on SIGHUP.

The runner and its commands go on when this is stopped or killed; the next start finds them.
GET /healthz and GET /__meta/version need no signature. Exit codes: 0 stopped, 64 wrong settings,
69 a probe found nobody, 73 cannot write, 75 the port or the runner is in use, 77 a probe's secret or
clock is wrong.")]
pub(crate) struct WorkspaceServiceArgs {
    /// The directory to serve
    #[arg(long, env = "WORKSPACE_ROOT", value_name = "DIR", required_unless_present = "probe")]
    pub(crate) root: Option<PathBuf>,
    /// Where to listen
    #[arg(long, env = "WORKSPACE_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8787")]
    pub(crate) listen: SocketAddr,
    /// The file of secrets, which only its owner may read
    #[arg(long, env = "WORKSPACE_SECRET_FILE", value_name = "FILE")]
    pub(crate) secret_file: PathBuf,
    /// Where the runner's socket, record and log are; not in the root
    #[arg(
        long,
        env = "WORKSPACE_DATA_DIR",
        value_name = "DIR",
        default_value = "/var/lib/sandbank-workspace"
    )]
    pub(crate) data_dir: PathBuf,
    /// Certificates, for TLS
    #[arg(long, env = "WORKSPACE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key
    #[arg(long, env = "WORKSPACE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Log lines: error, warn, info, debug, trace, or a filter
    #[arg(long, env = "WORKSPACE_LOG", value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
    /// Check settings and port, then leave
    #[arg(long)]
    pub(crate) check: bool,
    /// End the runner and all its commands, then leave
    #[arg(long, conflicts_with = "check")]
    pub(crate) stop_runner: bool,
    /// Use the service that is there, as a control plane would, and say what is wrong
    #[arg(long, value_name = "URL", conflicts_with_all = ["check", "stop_runner"])]
    pub(crate) probe: Option<String>,
    /// For `--probe` of https: who vouches for the service, as PEM certificates
    #[arg(long, value_name = "FILE", requires = "probe")]
    pub(crate) authorities: Option<PathBuf>,
}

impl WorkspaceServiceArgs {
    fn local(&self) -> LocalSettings {
        let root = self.root.clone().unwrap_or_default();
        LocalSettings::new(root, self.data_dir.join("runner"))
    }

    fn tls(&self) -> Option<ServiceTls> {
        let (certificates, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(ServiceTls { certificates, key })
    }

    /// All that is wrong at once, and the secrets if they are right.
    fn checked(&self) -> Result<KeyFile, Failure> {
        let files = [
            ("--secret-file (WORKSPACE_SECRET_FILE)", Some(&self.secret_file)),
            ("--tls-key (WORKSPACE_TLS_KEY)", self.tls_key.as_ref()),
        ];
        let apart =
            files.into_iter().filter_map(|(name, path)| Some((name.to_owned(), path?.clone())));
        let mut problems = self.local().problems(
            "--root (WORKSPACE_ROOT)",
            "--data-dir (WORKSPACE_DATA_DIR)",
            apart.collect(),
        );
        let keys = self.keys().map_err(|problem| problems.push(problem));
        match keys {
            Ok(keys) if problems.is_empty() => Ok(keys),
            _ => Err(wrong(&problems)),
        }
    }

    fn keys(&self) -> Result<KeyFile, Problem> {
        let name = "--secret-file (WORKSPACE_SECRET_FILE)";
        KeyFile::open(&self.secret_file).map_err(|error| error.problem(name, &self.secret_file))
    }
}

pub(crate) async fn run(context: &Context, args: WorkspaceServiceArgs) -> Result<u8, Failure> {
    if let Some(url) = &args.probe {
        return probe::run(context, url, &args).await;
    }
    let keys = Arc::new(args.checked()?);
    if args.stop_runner {
        let place = LocalPlace::open(args.local()).map_err(|error| unusable(&error))?;
        place.stop().await.map_err(|error| unusable(&error))?;
        return context.ui.line("the runner and its commands have ended").map(|()| 0);
    }
    let listener = TcpListener::bind(args.listen);
    let listener = listener.await.map_err(|error| no_listener(args.listen, &error))?;
    if args.check {
        return context.ui.line("everything is ready for `sandbank workspace-service`").map(|()| 0);
    }
    let lines = LogSettings { format: LogFormat::Auto, filter: args.log_level.clone() };
    let traces = args.traces.settings().map(|settings| log::traces(&settings)).transpose()?;
    let traces = log::for_server(&lines, traces.as_ref())?;
    let place = Arc::new(LocalPlace::open(args.local()).map_err(|error| unusable(&error))?);
    // Before anybody asks: what keeps the runner from starting is said here.
    place.client().await.map_err(|error| unusable(&error))?;
    let tls = args.tls();
    let service = Service::new(place, Arc::clone(&keys), tls.as_ref())
        .map_err(|error| Failure::usage(format!("TLS cannot be used: {error}")))?;
    let address = listener.local_addr().map_err(Failure::io("look at the listener"))?;
    let stop = CancellationToken::new();
    let watching = tokio::spawn(watch_signals(keys, stop.clone())?);
    let root = args.root.unwrap_or_default();
    let root = root.display();
    tracing::info!(%address, %root, version = %API_VERSION, tls = tls.is_some(), "ready");
    service.serve(listener, stop).await;
    watching.abort();
    if let Some(traces) = traces {
        traces.end().await;
    }
    Ok(0)
}

/// SIGHUP reads the secrets again, SIGTERM and Ctrl-C stop.
fn watch_signals(
    keys: Arc<KeyFile>,
    stop: CancellationToken,
) -> Result<impl Future<Output = ()>, Failure> {
    let listen = |kind| signal(kind).map_err(Failure::io("listen for signals"));
    let mut hangup = listen(SignalKind::hangup())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => keys.reload(),
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        tracing::info!("stopping; running requests may finish, the runner goes on");
        stop.cancel();
    })
}

fn wrong(problems: &[Problem]) -> Failure {
    crate::daemon::wrong(problems)
        .hint("`sandbank workspace-service --help` explains every setting")
}

fn no_listener(address: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Temporary, format!("cannot listen on {address}: {error}"))
        .hint("choose another address with --listen or WORKSPACE_LISTEN")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(root: &Path, secret: &Path, data: &Path) -> WorkspaceServiceArgs {
        let words: [&std::ffi::OsStr; 8] = [
            "sandbank".as_ref(),
            "workspace-service".as_ref(),
            "--root".as_ref(),
            root.as_ref(),
            "--secret-file".as_ref(),
            secret.as_ref(),
            "--data-dir".as_ref(),
            data.as_ref(),
        ];
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::WorkspaceService(args) = cli.command else { panic!("not a service") };
        args
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_with_its_flag_and_variable() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let secret = root.join("secret");
        std::fs::write(&secret, "x".repeat(40)).unwrap();
        let failure = args(&root, &secret, &root.join("data")).checked().unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        let lines: Vec<&str> = failure.message.lines().collect();
        assert_eq!(lines.len(), 3, "{lines:#?}");
        for name in ["WORKSPACE_SECRET_FILE", "WORKSPACE_DATA_DIR", "chmod 600"] {
            assert!(lines.iter().any(|line| line.contains(name)), "{name}: {lines:#?}");
        }
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "x".repeat(40)).unwrap();
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        args(&root, &secret, &dir.path().join("data")).checked().unwrap();
    }
}
