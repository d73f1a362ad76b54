//! The API over a real listener, a real orchestrator and real runners; only the machines are
//! plain processes, so that no privilege is needed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod archives;
mod attacks;
mod breakable;
mod breaker;
mod chat;
mod chat_mute;
mod commands;
mod differential;
mod events;
mod everywhere;
mod far;
mod files;
mod git;
mod hostile_runner;
mod http;
mod kept_workspaces;
mod limits;
mod log_lines;
mod logs;
mod mcp;
mod model_chat;
mod operations;
#[allow(dead_code, reason = "the orchestrator's tests use all of it")]
#[path = "../../../orchestrator/tests/lifecycle/process_engine.rs"]
mod process_engine;
mod pty;
mod pty_closed;
mod pty_floods;
mod raw_files;
mod returned;
mod revoked;
mod sandboxes;
mod searches;
mod session_cwd;
mod sessions;
mod shutdown;
mod terminals;
mod tokens;
mod tools;
mod tools_end;
mod tools_lost_output;
mod tools_room;
mod tools_told;
mod traces;
mod watch;
mod whole_trees;
mod workspace;
mod world;
