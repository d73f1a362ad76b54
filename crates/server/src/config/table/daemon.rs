//! Where the daemon keeps its things, and what makes its machines.

use super::super::checks;
use super::super::setting::{Kind, Preset, Setting};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        key: "data_dir",
        env: "SANDBANK_DATA_DIR",
        aliases: &[],
        flag: Some("data-dir"),
        kind: Kind::Text(checks::PATH),
        default: Preset::Computed("/var/lib/sandbank for root, else ~/.local/share/sandbank"),
        help: "Where the database, images, workspaces and the token file live.",
    },
    Setting {
        key: "engine",
        env: "SANDBANK_ENGINE",
        aliases: &[],
        flag: Some("engine"),
        kind: Kind::Choice(&["auto", "native", "docker"]),
        default: Preset::Text("auto"),
        help: "What makes sandboxes: namespaces of this machine, or a Docker Engine. auto takes native where every control it relies on can be enforced, else Docker where there is one.",
    },
    Setting {
        key: "engines",
        env: "SANDBANK_ENGINES",
        aliases: &[],
        flag: Some("engines"),
        kind: Kind::List(checks::ENGINE),
        default: Preset::Empty,
        help: "All that make sandboxes, like native,docker, where a create may name its `engine`. `engine` says which makes the others' sandboxes, or the first of these does. When this is empty, there is only `engine`. One that cannot be started keeps the others from nothing, unless it is the default; it is tried again.",
    },
];
