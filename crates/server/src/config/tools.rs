//! `[app.bash_tools]`: read from this daemon's own file, or from the one of the chat that uses it.

use std::path::PathBuf;

use sandbank_chat::ModelSettings;
use sandbank_tools::Config;
use sandbank_tools::config::Environment;
use toml::Table;

use super::chat;
use super::engines::EngineKind;
use super::error::ConfigError;
use super::file;
use super::resolve::Sources;
use super::secret::Secret;

const OTHER_FILE: &str = "REMCOCHAT_CONFIG_PATH";
const ADMIN_TOKEN: &str = "REMCOCHAT_ADMIN_TOKEN";
const KILL_SWITCH: &str = "REMCOCHAT_ENABLE_BASH_TOOL";

/// The tools, and the token that opens their routes.
pub(super) fn read(
    sources: &Sources,
    engine: EngineKind,
    others: &[EngineKind],
) -> Result<(Config, Option<Secret>, Option<ModelSettings>), ConfigError> {
    if sources.is_client {
        return Ok((Config::default(), None, None));
    }
    let token = sources.env(ADMIN_TOKEN).map(|token| token.trim().to_owned());
    let environment = Environment {
        enable: sources.env(KILL_SWITCH),
        admin_token_chars: token.as_ref().map(|token| token.chars().count()),
        engines: engine
            .name()
            .map(|default| others.iter().filter_map(|kind| kind.name()).chain([default]).collect()),
    };
    let (path, app) = app(sources)?;
    let wrong = |problems| ConfigError::Tools { path: path.clone().unwrap_or_default(), problems };
    let chat = chat::read(app.as_ref(), sources);
    let config = Config::read(app.as_ref(), &environment);
    let (config, chat) = match (config, chat) {
        (Ok(config), Ok(chat)) => (config, chat),
        (config, chat) => {
            let problems = [config.err(), chat.err()].into_iter().flatten().flatten();
            return Err(wrong(problems.collect()));
        }
    };
    // Where the tools are off, it is somebody else's.
    let token = token.filter(|_| config.enabled).map(Secret::new);
    Ok((config, token, chat))
}

/// Where the sections are, and what is below `app` there.
pub(super) fn app(sources: &Sources) -> Result<(Option<PathBuf>, Option<Table>), ConfigError> {
    let path = sources.env(OTHER_FILE).map(PathBuf::from).or_else(|| sources.existing_file());
    let app = match &path {
        Some(path) => file::app_section(path)?,
        None => None,
    };
    Ok((path, app))
}
