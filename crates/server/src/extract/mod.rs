//! What handlers take out of a request. Each piece is checked here and refused with our errors.

mod body;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod ids;
mod query;
mod unique_keys;
mod upload;

pub(crate) use body::{Loose, Once, Strict, Whole, bad_json, read_whole};
pub(crate) use ids::{CommandPath, SandboxPath, Segments, is_bound, is_hidden};
pub(crate) use query::Query;
pub(crate) use upload::Upload;
