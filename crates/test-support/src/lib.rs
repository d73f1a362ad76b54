//! What tests share: a real daemon, a plain HTTP client, waiting, and residue checks.
//!
//! Nothing here stands in for a part of the product: [`TestDaemon`] runs the real binary on a
//! data directory of its own, and removes every sandbox it made when it is dropped.

mod api;
mod cable;
mod corpus;
mod daemon;
mod docker;
mod docker_users;
mod literal_tar;
pub mod machines;
mod meanwhile;
mod over_docker;
mod pty;
pub mod residue;
mod seeded;
mod suite_image;
mod viewer;
mod wait;
pub mod workspace;

pub use api::{Api, LogRecord};
pub use cable::Cable;
pub use corpus::replay_corpus;
pub use daemon::{TestDaemon, free_port};
pub use docker::{PrivateDocker, busybox_root, find as find_program, find_unpacked};
pub use literal_tar::{literal_entry, literal_tar};
pub use meanwhile::{Meanwhile, Swapper};
pub use over_docker::{
    EngineUnderTest, SUITE_IMAGE, import_suite, is_over_docker, skip_over_docker,
};
pub use pty::{Pty, PtySeen};
pub use seeded::Seeded;
pub use suite_image::suite_root;
pub use viewer::{Seen, Viewer};
pub use wait::{eventually, wait_for};

/// A Python program that serves repositories over HTTP; its head says what its arguments are.
pub const GIT_SERVER: &str = include_str!("git_server.py");

/// Prints a counted reason and tells the caller to return.
pub fn skip_unless_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: making machines in this test needs root");
    }
    !root
}
