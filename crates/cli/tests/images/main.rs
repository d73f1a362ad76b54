//! Images out of a real registry on loopback: pulled, shared, refused, broken off, pruned.
//!
//! Every refusal has a pull that works beside it, and nothing is left behind by it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod credentials;
mod docker;
mod layers;
mod limits;
mod place;
mod pruned;
mod pulled;
mod refused;
mod registry;
mod shipped;
mod tls;
mod weak_link;
