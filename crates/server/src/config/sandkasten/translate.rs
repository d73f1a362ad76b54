//! One setting of Sandkasten's as settings of ours.

use super::super::error::{ConfigError, Origin};
use super::super::table;
use super::Taken;
use super::names::{Meaning, Name};

pub(super) fn take(
    name: &Name,
    text: &str,
    origin: Origin,
    taken: &mut Taken,
    notices: &mut Vec<String>,
) -> Result<(), ConfigError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let mut put = |key: &'static str, text: String| {
        taken.insert(key, (text, origin.clone()));
    };
    match &name.meaning {
        Meaning::Same(key) => put(key, text.to_owned()),
        Meaning::DataDir => put("data_dir", format!("{}/sandbank", text.trim_end_matches('/'))),
        Meaning::Listen => {
            let (host, port) = listen(text).ok_or_else(|| {
                invalid(&origin, text, "an address and a port, like 127.0.0.1:8080")
            })?;
            put("server.host", host);
            put("server.port", port);
        }
        Meaning::Cores(key) => {
            let whole = whole_cores(text)
                .ok_or_else(|| invalid(&origin, text, "a whole number of cores, like 1 or 2.0"))?;
            put(key, whole);
        }
        Meaning::Words { key, known, refused } => {
            let word = known.iter().find(|(theirs, _)| *theirs == text);
            let (_, ours) = word.ok_or_else(|| {
                let words: Vec<&str> = known.iter().map(|(theirs, _)| *theirs).collect();
                invalid(&origin, text, &format!("one of {} ({refused})", words.join(", ")))
            })?;
            put(key, (*ours).to_owned());
        }
        Meaning::PoolSwitch | Meaning::PoolImage => {}
        Meaning::Nothing { unless, why } => {
            if !unless.contains(&text.to_ascii_lowercase().as_str()) {
                notices.push(format!("{origin} is set, but has no effect: {why}"));
            }
        }
    }
    Ok(())
}

pub(super) fn invalid(origin: &Origin, text: &str, allowed: &str) -> ConfigError {
    ConfigError::Invalid {
        origin: origin.clone(),
        value: format!("{:?}", text.chars().take(120).collect::<String>()),
        allowed: allowed.to_owned(),
        default: "that of Sandbank",
    }
}

/// `127.0.0.1:8080`, `[::1]:8080`, `:8080` for everywhere.
fn listen(text: &str) -> Option<(String, String)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_setting =
        |key: &str, text: &str| table::row(key).and_then(|row| row.parse(text)).is_some();
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let fits = is_setting("server.host", host) && is_setting("server.port", port);
    fits.then(|| (host.to_owned(), port.to_owned()))
}

/// `1.0` and `2`. A part of a core cannot be had; nobody is given more than they asked for.
fn whole_cores(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let fits = digits(whole) && digits(fraction) && fraction.bytes().all(|b| b == b'0');
    fits.then(|| whole.to_owned())
}
