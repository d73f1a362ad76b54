//! Finds the server that runs on this machine, and the token for it.
//!
//! A token is only sent where its data directory says that the server is: the holder of the
//! directory's lock wrote the address there itself. Elsewhere only `SANDBANK_TOKEN` is used.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sandbank_server::TokenFile;
use sandbank_server::config::{self, Secret, Settings, Sources};
use tokio::time::Instant;

use crate::client::{Client, ClientError, is_loopback};
use crate::daemon::{Holder, bad_config, bad_token_file, holder};
use crate::failure::Failure;
use crate::limits::{PROBE_PAUSE, PROBE_TIMEOUT, STARTING_LIMIT};

pub(crate) fn settings() -> Result<Settings, Failure> {
    config::load(&Sources::of_a_client()).map_err(|error| bad_config(&error))
}

/// The token for an address that the person named, and the address to call: `localhost` may be
/// several, and the token is for the one that our server listens on.
pub(crate) fn token_for(url: &str) -> Result<(String, Option<Secret>), Failure> {
    if let Some(token) = token_from_environment() {
        return Ok((url.to_owned(), Some(token)));
    }
    // A broken configuration is no reason to fail here: it only means that no token is known.
    let Ok(settings) = settings() else { return Ok((url.to_owned(), None)) };
    match holder(&settings.data_dir) {
        Holder::Server(announced) if same(&announced, url) => {
            Ok((dialled(announced, url), Some(token_from_file(&settings)?)))
        }
        _ => Ok((url.to_owned(), None)),
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
                let answers = client.is_there(PROBE_TIMEOUT * 5).await;
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
    let url = usual_address(settings);
    let token = token_from_environment();
    let has_token = token.is_some();
    let client = Client::new(&url, token)?;
    Ok(match client.health(PROBE_TIMEOUT).await {
        Ok(health) if health["ok"] != true => Found::Nothing,
        Ok(_) | Err(ClientError::Refused(_)) if has_token => Found::Server(client),
        Ok(_) => Found::Closed { url },
        Err(_) => Found::Nothing,
    })
}

/// Where a server of this data directory listens or, as far as can be seen, would.
pub(crate) fn address(settings: &Settings) -> String {
    match holder(&settings.data_dir) {
        Holder::Server(url) => url,
        _ => usual_address(settings),
    }
}

/// One that listens everywhere is asked at the loopback address: it answers to no other name.
fn usual_address(settings: &Settings) -> String {
    let mut bind = settings.server.bind;
    match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => bind.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => bind.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{bind}")
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

/// `localhost` stands for the announced address; any other name is one already.
fn dialled(announced: String, named: &str) -> String {
    let by_name =
        named.parse::<reqwest::Url>().is_ok_and(|url| url.host_str() == Some("localhost"));
    let is_one = announced.parse().is_ok_and(|url| is_loopback(&url));
    if by_name && is_one { announced } else { named.to_owned() }
}

/// Whether the named address is the announced one, which another name of this machine is, too.
fn same(announced: &str, named: &str) -> bool {
    let (Ok(announced), Ok(named)) =
        (announced.parse::<reqwest::Url>(), named.parse::<reqwest::Url>())
    else {
        return false;
    };
    let same_host = announced.host_str() == named.host_str();
    let by_name = named.host_str() == Some("localhost") && is_loopback(&announced);
    let everywhere =
        matches!(announced.host_str(), Some("0.0.0.0" | "[::]")) && is_loopback(&named);
    (same_host || by_name || everywhere)
        && announced.port_or_known_default() == named.port_or_known_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_for_the_address_that_was_announced() {
        let announced = "http://127.0.0.1:8080";
        for ours in ["http://127.0.0.1:8080", "http://127.0.0.1:8080/", "http://localhost:8080"] {
            assert!(same(announced, ours), "{ours}");
        }
        assert!(same("http://0.0.0.0:80", "http://127.0.0.1:80"), "it listens everywhere");
        assert_eq!(dialled(announced.to_owned(), "http://localhost:8080"), announced);
        for other in ["http://127.0.0.2:8080", "http://[::1]:8080", "http://127.0.0.1:8081", "no"] {
            assert!(!same(announced, other), "{other}");
        }
    }
}
