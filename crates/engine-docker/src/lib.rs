//! Machines made of containers by a Docker Engine, here or elsewhere.
//!
//! [`DockerEngine`] speaks the engine's API and nothing else: no host path is mounted, no port is
//! published, no file of a running container is touched. The runner comes in a read-only volume and
//! is reached through its container's standard streams. What belongs to a machine carries labels,
//! so nothing has to be remembered that the engine does not know.

mod connection;
mod container;
mod controls;
mod egress;
mod image;
mod lifecycle;
mod limits;
mod naming;
mod network;
mod places;
mod runner_volume;
mod settings;
mod streams;

pub use lifecycle::DockerEngine;
pub use settings::DockerSettings;
