//! The daemon's parts put together: by `serve` for good, by `run` for a moment.
//!
//! Owns the order of starting and stopping, and the data directory's lock. Everything the parts
//! do is theirs; what can go wrong while starting becomes one sentence here.

mod choose;
mod data_dir;
mod engine_settings;
mod left_behind;
mod others;
mod own;
mod parts;
mod self_test;
mod start_failure;
mod workspace_place;

pub(crate) use choose::choose_engine;
pub(crate) use data_dir::{DataDir, Holder, holder};
pub(crate) use left_behind::Mark;
pub(crate) use own::OwnDaemon;
pub(crate) use parts::Daemon;
pub(crate) use self_test::escaped;
pub(crate) use start_failure::{bad_config, bad_token_file, cannot_test};
pub(crate) use workspace_place::{check as check_workspace, unusable, wrong};
