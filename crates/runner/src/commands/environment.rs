//! The environment of commands: what is always there, what the engine adds, what the caller adds.

use std::collections::BTreeMap;

use sandbank_protocol::{CommandSpec, RunnerConfig};

pub(crate) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Carried by everything a command starts, so that a timeout finds what left its session.
pub(crate) const MARKER: &str = "SANDBANK_COMMAND";

pub(crate) type Environment = BTreeMap<String, String>;

/// The defaults, overridden by the engine's choice.
pub(crate) fn base(config: &RunnerConfig) -> Environment {
    let defaults = [
        ("PATH", DEFAULT_PATH),
        ("HOME", &config.workspace),
        ("USER", "user"),
        ("LOGNAME", "user"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
        ("TERM", "xterm-256color"),
    ];
    let mut environment: Environment =
        defaults.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    environment.extend(config.env.clone());
    environment
}

/// The base, overridden by the caller's choice, but for the marker.
pub(crate) fn of_command(base: &Environment, spec: &CommandSpec, cwd: &str) -> Environment {
    let mut environment = base.clone();
    environment.insert("PWD".to_owned(), cwd.to_owned());
    environment.extend(spec.env.clone());
    environment.insert(MARKER.to_owned(), spec.id.to_string());
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_overrides_the_engine_which_overrides_the_defaults() {
        let env = [("LANG", "C"), ("A", "engine"), ("B", "engine")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let config = RunnerConfig { env, workspace: "/w".to_owned(), ..RunnerConfig::default() };
        let spec: CommandSpec = serde_json::from_value(serde_json::json!({
            "id": "x", "argv": ["true"], "env": { "B": "caller", "SANDBANK_COMMAND": "forged" },
        }))
        .unwrap();
        let environment = of_command(&base(&config), &spec, "/w/sub");
        let expected = [("PATH", DEFAULT_PATH), ("HOME", "/w"), ("PWD", "/w/sub"), ("LANG", "C")];
        let more = [("A", "engine"), ("B", "caller"), ("SANDBANK_COMMAND", "x")];
        for (name, value) in expected.iter().chain(&more) {
            assert_eq!(environment[*name], *value, "{name}");
        }
    }
}
