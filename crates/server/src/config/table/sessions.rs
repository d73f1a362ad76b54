//! Sandkasten's sessions.

use super::super::checks;
use super::super::setting::{Kind, Preset, Setting};
use crate::limits::{EXEC_TIMEOUT_MS, SESSION_TTL_SECONDS};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        key: "sessions.api_key",
        env: "SANDBANK_API_KEY",
        aliases: &[],
        flag: None,
        kind: Kind::Secret,
        default: Preset::Empty,
        help: "A token for `/v1/sessions` and `/v1/workspaces` and no other route: what Sandkasten's clients call their API key. Without it, the tokens of this server are used, on a loopback address too.",
    },
    Setting {
        key: "sessions.default_image",
        env: "SANDBANK_SESSION_IMAGE",
        aliases: &[],
        flag: Some("session-image"),
        kind: Kind::Text(checks::SESSION_IMAGE),
        default: Preset::Text("base"),
        help: "Image of a session whose caller names none. `base`, `python` and `node` stand for an imported image of that name, else for sandboxes.default_image.",
    },
    Setting {
        key: "sessions.allowed_images",
        env: "SANDBANK_SESSION_IMAGES",
        aliases: &[],
        flag: Some("session-images"),
        kind: Kind::List(checks::SESSION_IMAGE),
        default: Preset::Empty,
        help: "Images that sessions may have; none here means all there are.",
    },
    Setting {
        key: "sessions.ttl_seconds",
        env: "SANDBANK_SESSION_TTL_SECONDS",
        aliases: &[],
        flag: Some("session-ttl-seconds"),
        kind: Kind::Integer { min: 1, max: *SESSION_TTL_SECONDS.end() },
        default: Preset::Text("1800"),
        help: "How long a session may stay unused before it is deleted, where its caller does not say.",
    },
    Setting {
        key: "sessions.max_exec_timeout_ms",
        env: "SANDBANK_MAX_EXEC_TIMEOUT_MS",
        aliases: &[],
        flag: Some("max-exec-timeout-ms"),
        kind: Kind::Integer { min: 1, max: *EXEC_TIMEOUT_MS.end() },
        default: Preset::Text("120000"),
        help: "The longest that a command of a session may run; callers who ask for more, or for nothing, get this.",
    },
    Setting {
        key: "sessions.network",
        env: "SANDBANK_SESSION_NETWORK",
        aliases: &[],
        flag: Some("session-network"),
        kind: Kind::Choice(&["none", "default"]),
        default: Preset::Text("none"),
        help: "Who sessions may reach: nobody, or public addresses.",
    },
    Setting {
        key: "sessions.pool",
        env: "SANDBANK_SESSION_POOL",
        aliases: &[],
        flag: Some("session-pool"),
        kind: Kind::List(checks::SESSION_POOL),
        default: Preset::Empty,
        help: "Machines kept ready for sessions, like python=2,base=1: images as sessions name them, beside those of sandboxes.pool.",
    },
    Setting {
        key: "sessions.workspaces",
        env: "SANDBANK_SESSION_WORKSPACES",
        aliases: &[],
        flag: Some("session-workspaces"),
        kind: Kind::Switch,
        default: Preset::Text("true"),
        help: "Whether sessions may name a workspace that is kept when they end.",
    },
];
