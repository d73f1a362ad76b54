//! Those who make sandboxes for the tools.

mod own;

pub use own::{KEY_PREFIX, Own, Template};
