//! One file per subcommand: its flags, and what it does through the client.

mod attack;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod health;
pub(crate) mod image;
pub(crate) mod inspect;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod port;
pub(crate) mod ps;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod token;
pub(crate) mod workspace;
pub(crate) mod workspace_service;
