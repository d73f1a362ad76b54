//! The table as command-line flags.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::setting::{Kind, Setting};
use super::table;

const CONFIG: &str = "config";
const SANDKASTEN_CONFIG: &str = "sandkasten-config";

/// What the command line says. Flatten it into a clap command: `#[command(flatten)]`.
#[derive(Debug, Clone, Default)]
pub struct ConfigFlags {
    /// The file to read instead of the usual one.
    pub config: Option<PathBuf>,
    /// A YAML file of Sandkasten's, instead of the usual one.
    pub sandkasten_config: Option<PathBuf>,
    /// Texts by key; checked by `config::load` like every other source.
    pub(super) values: BTreeMap<&'static str, String>,
}

impl ConfigFlags {
    /// As if the setting `key` had been given on the command line. For tests and embedders.
    #[must_use]
    pub fn with(mut self, key: &str, text: impl Into<String>) -> Self {
        let setting = table::row(key).expect("the key is one of the table's");
        self.values.insert(setting.key, text.into());
        self
    }
}

impl clap::Args for ConfigFlags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Configuration file [env: SANDBANK_CONFIG] [default: /etc/sandbank/config.toml for root, else ~/.config/sandbank/config.toml, where it exists]");
        let sandkasten = Arg::new(SANDKASTEN_CONFIG)
            .long(SANDKASTEN_CONFIG)
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Sandkasten's YAML file, below all of Sandbank's own settings [env: SANDBANK_SANDKASTEN_CONFIG] [default: /etc/sandkasten/sandkasten.yaml for root, where it exists]");
        let command = command.arg(config).arg(sandkasten);
        table::rows().filter_map(argument).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self {
            config: matches.get_one(CONFIG).cloned(),
            sandkasten_config: matches.get_one(SANDKASTEN_CONFIG).cloned(),
            ..Self::default()
        };
        for setting in table::rows().filter(|setting| setting.flag.is_some()) {
            if let Some(words) = matches.get_many::<String>(setting.key) {
                let words: Vec<&str> = words.map(String::as_str).collect();
                flags.values.insert(setting.key, words.join(","));
            }
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(setting: &'static Setting) -> Option<Arg> {
    let arg = Arg::new(setting.key).long(setting.flag?).help(help(setting));
    let arg = arg.help_heading(heading(setting)).action(ArgAction::Set);
    Some(match &setting.kind {
        Kind::Integer { .. } => arg.value_name("N"),
        Kind::Switch => arg.value_name("BOOL").num_args(0..=1).default_missing_value("true"),
        Kind::Choice(_) => arg.value_name("WORD"),
        Kind::Text(_) | Kind::Secret => arg.value_name("TEXT"),
        Kind::List(_) => arg.value_name("LIST").action(ArgAction::Append),
    })
}

fn heading(setting: &Setting) -> String {
    format!("Settings: {}", setting.section())
}

fn help(setting: &Setting) -> String {
    let names = std::iter::once(setting.env).chain(setting.aliases.iter().copied());
    let names: Vec<&str> = names.collect();
    let help = setting.help;
    format!("{help} [env: {}] [default: {}]", names.join(", "), setting.default_text())
}
