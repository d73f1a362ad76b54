//! Finds the server that runs on this machine, and the token for it.
//!
//! A token is only sent where its data directory says that the server is: the holder of the
//! directory's lock wrote the address there itself. Elsewhere only `SANDBANK_TOKEN` is used.

use sandbank_server::TokenFile;
use sandbank_server::config::{self, Secret, Settings, Sources};
use tokio::time::Instant;

use crate::client::{Client, is_loopback};
use crate::daemon::{Holder, bad_config, bad_token_file, holder};
use crate::failure::Failure;
use crate::limits::{PROBE_PAUSE, PROBE_TIMEOUT, STARTING_LIMIT};

pub(crate) fn settings() -> Result<Settings, Failure> {
    config::load(&Sources::of_a_client()).map_err(|error| bad_config(&error))
}

/// For an address that the person named.
pub(crate) fn token_for(url: &str) -> Result<Option<Secret>, Failure> {
    if let Some(token) = token_from_environment() {
        return Ok(Some(token));
    }
    // A broken configuration is no reason to fail here: it only means that no token is known.
    let Ok(settings) = settings() else { return Ok(None) };
    match (url.parse(), holder(&settings.data_dir)) {
        (Ok(parsed), Holder::Server(announced))
            if is_loopback(&parsed) && same(&announced, url) =>
        {
            token_from_file(&settings).map(Some)
        }
        _ => Ok(None),
    }
}

/// What was found at the place where a server would be.
pub(crate) enum Found {
    Server(Client),
    /// A server that wants a token we do not have.
    Closed {
        url: String,
    },
    Nothing,
}

pub(crate) async fn running(settings: &Settings) -> Result<Found, Failure> {
    let deadline = Instant::now() + STARTING_LIMIT;
    loop {
        match holder(&settings.data_dir) {
            Holder::Server(url) => {
                let token = match token_from_environment() {
                    Some(token) => token,
                    None => token_from_file(settings)?,
                };
                let client = Client::new(&url, Some(token))?;
                let answers = client.health(PROBE_TIMEOUT * 5).await.is_ok();
                return Ok(if answers { Found::Server(client) } else { Found::Nothing });
            }
            Holder::Starting if Instant::now() < deadline => {
                tokio::time::sleep(PROBE_PAUSE).await;
            }
            Holder::Starting | Holder::Private | Holder::Nobody | Holder::Unknown => {
                return stranger(settings).await;
            }
        }
    }
}

/// A server at the usual address whose data directory we cannot see: only a token from the
/// environment is for it.
async fn stranger(settings: &Settings) -> Result<Found, Failure> {
    let url = format!("http://{}", settings.server.bind);
    let token = token_from_environment();
    let has_token = token.is_some();
    let client = Client::new(&url, token)?;
    Ok(match client.health(PROBE_TIMEOUT).await {
        Ok(health) if health["ok"] != true => Found::Nothing,
        Ok(_) if has_token => Found::Server(client),
        Ok(_) => Found::Closed { url },
        Err(_) => Found::Nothing,
    })
}

fn token_from_environment() -> Option<Secret> {
    let token = std::env::var("SANDBANK_TOKEN").ok()?;
    let token = token.trim();
    (!token.is_empty()).then(|| Secret::new(token))
}

fn token_from_file(settings: &Settings) -> Result<Secret, Failure> {
    TokenFile::open(&settings.data_dir)
        .map(|file| file.token)
        .map_err(|error| bad_token_file(&error))
}

fn same(announced: &str, named: &str) -> bool {
    let port = |url: &str| url.parse::<reqwest::Url>().ok()?.port_or_known_default();
    port(announced).is_some() && port(announced) == port(named)
}
