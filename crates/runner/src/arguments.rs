//! The command line: an engine writes it, so there are few words and no abbreviations.

use std::os::fd::RawFd;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// `--client …`, whose words are read by `front::client`.
    Client,
    /// `contain JSON`, the plan of a battery of attacks; read by `contain`.
    Contain,
    Serve(Serve),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Serve {
    pub(crate) config: ConfigSource,
    /// Make a socket at this path, instead of or beside an inherited one.
    pub(crate) listen: Option<String>,
    /// Serve whoever opens the link over stdin and stdout.
    pub(crate) stdio: bool,
    /// Say on stdout when connections are accepted.
    pub(crate) ready: bool,
    /// Leave the session and the terminal of who starts it.
    pub(crate) session: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    #[default]
    Defaults,
    Descriptor(RawFd),
    Text(String),
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0}\nusage: runner serve [--config-fd N | --config JSON] [--listen PATH [--ready]] [--stdio] [--session]\n       \
     runner --client '<json>' [--socket PATH]"
)]
pub(crate) struct UsageError(String);

impl Arguments {
    pub(crate) fn parse(words: &[String]) -> Result<Self, UsageError> {
        let mut words = words.iter().map(String::as_str);
        match words.next() {
            Some("--client") => Ok(Self::Client),
            Some(sandbank_protocol::containment::WORD) => Ok(Self::Contain),
            Some("serve") => Serve::parse(words).map(Self::Serve),
            Some(other) => Err(UsageError(format!("{other:?} is not understood"))),
            None => Err(UsageError("there is nothing to do".to_owned())),
        }
    }
}

impl Serve {
    fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Self, UsageError> {
        let mut serve = Self::default();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().ok_or_else(|| UsageError(format!("{word} needs a value")));
            match word {
                "--config-fd" => {
                    let fd = value()?.parse().ok().filter(|fd| *fd >= 0);
                    let fd = fd.ok_or_else(|| UsageError("--config-fd takes a number".into()))?;
                    serve.config = ConfigSource::Descriptor(fd);
                }
                "--config" => serve.config = ConfigSource::Text(value()?.to_owned()),
                "--listen" => serve.listen = Some(value()?.to_owned()),
                "--stdio" => serve.stdio = true,
                "--ready" => serve.ready = true,
                "--session" => serve.session = true,
                other => return Err(UsageError(format!("{other:?} is not understood"))),
            }
        }
        if serve.stdio && serve.ready {
            return Err(UsageError("--ready and --stdio both need stdout".to_owned()));
        }
        Ok(serve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, UsageError> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words)
    }

    #[test]
    fn the_engine_names_a_descriptor() {
        let serve = Serve { config: ConfigSource::Descriptor(5), ..Serve::default() };
        assert_eq!(parse("serve --config-fd 5"), Ok(Arguments::Serve(serve)));
    }

    #[test]
    fn a_person_names_a_path() {
        let listen = Some("/run/runner.sock".to_owned());
        let serve = Serve { listen, ready: true, ..Serve::default() };
        assert_eq!(parse("serve --listen /run/runner.sock --ready"), Ok(Arguments::Serve(serve)));
    }

    #[test]
    fn a_container_attaches_to_the_streams() {
        let serve =
            Serve { config: ConfigSource::Text("{}".to_owned()), stdio: true, ..Serve::default() };
        assert_eq!(parse("serve --stdio --config {}"), Ok(Arguments::Serve(serve)));
        assert!(parse("serve --stdio --ready").is_err());
    }

    #[test]
    fn anything_else_is_refused() {
        for line in ["", "run", "serve --config-fd", "serve --config-fd -1", "serve x"] {
            assert!(parse(line).is_err(), "{line:?} was accepted");
        }
    }
}
