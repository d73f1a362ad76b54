//! Newline-delimited JSON: a command's frames as records, written without intermediate copies.

mod escape;
#[cfg(test)]
mod instructions;
mod record;

pub(crate) use record::{Encoding, ending_record, frame_record};
