//! The spawner: a single-threaded child of the daemon that clones machines.
//!
//! It exists because cloning from the daemon would cost more with every megabyte and descriptor
//! the daemon has, and because code between clone and exec must not meet another thread's locks.
//! It has no state of its own: machines survive it, it ends when the daemon's end of the socket
//! closes, and the daemon starts a new one whenever it is gone.
//!
//! Daemon side: [`client`]. Spawner side: [`server`], [`scaffold`], [`child`]. Shared: [`wire`].

mod child;
pub(crate) mod client;
mod link;
mod rootless;
mod scaffold;
mod server;
mod socket;
mod statuses;
mod step;
mod user_namespace;
pub(crate) mod wire;

pub(crate) use client::Spawner;
pub(crate) use step::{Failure, Step};

use std::os::fd::RawFd;

/// The hidden argument that makes a program a spawner.
pub const SPAWNER_ARGUMENT: &str = "__spawner";

/// Where the spawner finds its socket: the daemon passes it as standard input.
pub const SPAWNER_FD: RawFd = 0;

/// Serves the daemon at the other end of `socket` until it closes.
///
/// The process must have no other thread.
pub fn spawner_main(socket: RawFd) -> ! {
    server::run(socket)
}

/// For programs whose `main` is not theirs, such as tests: see [`spawner_entry!`].
#[doc(hidden)]
pub fn become_spawner_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SPAWNER_ARGUMENT) && arguments.next().is_none()
    {
        spawner_main(SPAWNER_FD);
    }
}

/// Lets the program that contains this line serve as its own spawner, before its `main` runs.
#[macro_export]
macro_rules! spawner_entry {
    () => {
        const _: () = {
            extern "C" fn enter() {
                $crate::become_spawner_if_asked();
            }
            #[allow(unsafe_code, reason = "the section's entries are called before main")]
            #[used]
            #[unsafe(link_section = ".init_array")]
            static ENTRY: extern "C" fn() = enter;
        };
    };
}
