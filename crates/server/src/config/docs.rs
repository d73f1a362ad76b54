//! `docs/configuration.md`, from the table.

use std::fmt::Write;

use super::sandkasten::NAMES;
use super::setting::Setting;
use super::table::{self, WITHOUT_EFFECT};

const HEAD: &str = "\
# Configuration

Generated from the table in `crates/server/src/config/table.rs`; do not edit.

A value comes from the first of these that has it: the flag, the environment variable, the
configuration file, Sandkasten's configuration file, the default. The file is TOML, at `/etc/sandbank/config.toml` for root and
`~/.config/sandbank/config.toml` for others, or where `--config` or `SANDBANK_CONFIG` says.
Unknown keys and values out of range stop the daemon with exit code 64 and a message that names
the source. An empty environment variable counts as unset. Commands that call a server, such as `sandbank ps`, do not look at
`workspace`, `traces` and `auth.allowed_origins`: other programs have variables of the same names. The section `app.bash_tools` is described in
[tools.md](tools.md); what else is below `app` is other programs' and ignored.
";

/// The whole page.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for setting in table::rows() {
        if setting.section() != section {
            section = setting.section();
            let _ = write!(page, "\n## {section}\n");
        }
        page.push_str(&entry(setting));
    }
    page.push_str(&sandboxd_names());
    page.push_str(&sandkasten_names());
    page
}

fn entry(setting: &Setting) -> String {
    let flag =
        setting.flag.map_or("none (a command line is visible to others)".to_owned(), |flag| {
            format!("`--{flag}`")
        });
    let names = std::iter::once(setting.env).chain(setting.aliases.iter().copied());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!(
        "\n### `{}`\n\n{}\n\n| flag | environment | default | allowed |\n|---|---|---|---|\n| {flag} | {} | {} | {} |\n",
        setting.key,
        setting.help,
        names.join(", "),
        setting.default_text(),
        setting.allowed(),
    )
}

fn sandboxd_names() -> String {
    let mut text =
        "\n## Names of sandboxd\n\nThe environment of a sandboxd daemon is understood:\n\n\
                    | sandboxd | here |\n|---|---|\n"
            .to_owned();
    for setting in table::rows() {
        for alias in setting.aliases {
            let _ = writeln!(text, "| `{alias}` | `{}` |", setting.key);
        }
    }
    for name in WITHOUT_EFFECT {
        let _ = writeln!(text, "| `{name}` | accepted, no effect; the log says so |");
    }
    text
}

const SANDKASTEN_HEAD: &str = "
## Names of Sandkasten

The environment of a Sandkasten daemon and its YAML file are understood. Its environment comes after
our own names and before our file; its file comes after ours. The file is the one that
`--sandkasten-config` or `SANDBANK_SANDKASTEN_CONFIG` names, else, for root, `/etc/sandkasten/sandkasten.yaml`.
One in the working directory is never read on its own, since it may have come with somebody's repository:
`sandbank serve` says that it is there. Commands that call a server, such as `sandbank ps`, read only a file that
`SANDBANK_SANDKASTEN_CONFIG` names. A key that stands twice is refused; one that is not known is said in the
log and has no effect. With no `api_key` the routes need a token of this server, on a loopback address too.

| Sandkasten's file | environment | here |
|---|---|---|
";

fn sandkasten_names() -> String {
    let mut text = SANDKASTEN_HEAD.to_owned();
    for name in NAMES {
        let env = name.env.map(|env| format!("`{env}`")).unwrap_or_default();
        let _ = writeln!(text, "| `{}` | {env} | {} |", name.yaml, name.here());
    }
    text
}
