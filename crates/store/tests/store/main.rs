//! The store on real files, in good and in bad shape.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk_full;
mod fixture;
mod opening;
mod tables;
mod upgrades;
mod writers;
