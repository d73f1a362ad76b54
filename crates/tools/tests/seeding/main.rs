//! Workspaces are filled: by a real git from a real server, and by a real tar, into a directory that stands
//! for the sandbox's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod directory;
mod git;
mod repository;
mod upload;
