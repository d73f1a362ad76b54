//! Copying between this machine and a sandbox.
//!
//! What a sandbox says about its files is hostile input: names are judged before they touch the
//! local disk, nothing is ever written through a local symbolic link below the destination, and
//! links are made last and only when they stay inside the copy.

mod download;
mod entry_name;
mod links;
mod local_file;
mod place;
mod tally;
mod upload;

pub(crate) use download::download;
pub(crate) use place::{Place, Remote};
pub(crate) use tally::Copied;
pub(crate) use upload::upload;
