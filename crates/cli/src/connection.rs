//! How a command reaches a server: the one that was named, the one that runs, or one of its own.

use sandbank_server::config::Settings;

use crate::client::{Client, TOKEN_IS_MISSING};
use crate::context::Context;
use crate::daemon::{Daemon, Mark, OwnDaemon};
use crate::failure::{Exit, Failure};
use crate::locate::{self, Found};

/// What a command may do when no server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach<'a> {
    /// Fail: what it asks for is in a running server.
    Running,
    /// Start the daemon's parts in this process. With `keep`, what it makes must outlive it, so
    /// a data directory that goes away afterwards is no place for it.
    /// `engine` is the one that it will name.
    OrOwn { keep: bool, engine: Option<&'a str> },
    /// Look after what a `run` left in the data directory, if one ever was, for a moment.
    OrLeftBehind,
}

pub(crate) struct Connection {
    pub(crate) client: Client,
    own: Option<OwnDaemon>,
}

impl Connection {
    pub(crate) async fn open(context: &Context, reach: Reach<'_>) -> Result<Self, Failure> {
        if let Some(url) = &context.url {
            let (url, token) = locate::token_for(url)?;
            let client = Client::new(&url, token)?;
            return Ok(Self { client, own: None });
        }
        let settings = locate::settings()?;
        match (locate::running(&settings).await?, reach) {
            (Found::Server(client), _) => Ok(Self { client, own: None }),
            (Found::Closed { url }, Reach::Running | Reach::OrLeftBehind) => {
                Err(closed(&url, &settings))
            }
            (Found::Nothing, Reach::OrLeftBehind) if Daemon::was_in(&settings.data_dir) => {
                let data = settings.data_dir.display();
                context.ui.note(&format!(
                    "no server has the data directory {data}; this is about what was left there"
                ));
                let own = OwnDaemon::start_briefly(settings).await?;
                Ok(Self { client: own.client().clone(), own: Some(own) })
            }
            (Found::Nothing, Reach::Running | Reach::OrLeftBehind) => Err(nothing_runs(&settings)),
            (_, Reach::OrOwn { keep, engine }) => {
                let own = OwnDaemon::start(&context.ui, settings, keep, engine).await?;
                Ok(Self { client: own.client().clone(), own: Some(own) })
            }
        }
    }

    /// A sandbox in a daemon of our own goes with us, unless it is to be kept.
    pub(crate) fn mark(&self, key: &str) -> Result<Option<Mark>, Failure> {
        self.own.as_ref().map(|own| own.mark(key)).transpose()
    }

    /// Ends a daemon of our own; sandboxes that were kept go on.
    pub(crate) async fn close(self) {
        if let Some(own) = self.own {
            own.stop().await;
        }
    }
}

fn nothing_runs(settings: &Settings) -> Failure {
    let (address, data) = (settings.server.bind, settings.data_dir.display());
    let message =
        format!("no server runs at http://{address}, and none has the data directory {data}");
    Failure::new(Exit::Unreachable, message).hint(
        "start one with `sandbank serve`; if one runs elsewhere, set SANDBANK_DATA_DIR to its data \
         directory, or SANDBANK_URL (or --url) to its address and SANDBANK_TOKEN",
    )
}

/// It is at the usual address, but not in the directory that we look into.
fn closed(url: &str, settings: &Settings) -> Failure {
    let data = settings.data_dir.display();
    let message = format!(
        "the server at {url} has another data directory than {data}, so we do not have its token"
    );
    Failure::new(Exit::NotPermitted, message).hint(TOKEN_IS_MISSING)
}
