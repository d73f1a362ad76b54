//! The one table of settings. The file's keys, the environment's names, the flags, `--help` and
//! `docs/configuration.md` all come from here; `settings.rs` reads every row once.

mod daemon;
mod docker;
mod machines;
mod records;
mod sandboxes;
mod server;
mod sessions;
mod workspace;

use super::setting::Setting;

pub(super) const DEFAULT_VCPUS: &str = "sandboxes.default_vcpus";

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Known to sandboxd's users and accepted, but they have no effect here.
pub const WITHOUT_EFFECT: &[&str] = &[
    "SANDBOXD_DISABLE_AUTOBUILD",
    "SANDBOXD_HOST_BIND_IP",
    "SANDBOXD_REQUIRE_TOKEN",
    "SPRITES_API_TOKEN",
    "SPRITES_BASE_URL",
    "SPRITES_SPRITE_NAME",
    "SPRITES_WORKSPACE_SERVICE_HOST",
    "SPRITES_WORKSPACE_SERVICE_PATH",
    "SPRITES_WORKSPACE_SERVICE_PORT",
    "WORKSPACE_ROUTING_MODE",
];

/// In the order in which people read them.
const SECTIONS: &[&[Setting]] = &[
    daemon::ROWS,
    server::ROWS,
    sandboxes::ROWS,
    sessions::ROWS,
    workspace::ROWS,
    machines::ROWS,
    docker::ROWS,
    records::ROWS,
];

pub fn rows() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().copied().flatten()
}

pub(super) fn row(key: &str) -> Option<&'static Setting> {
    rows().find(|row| row.key == key)
}
