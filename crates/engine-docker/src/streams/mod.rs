//! A machine's streams: its frames, what its runner complains about, and the link through them.

mod complaints;
mod cut;
mod frames;
mod link;

pub(crate) use complaints::Complaints;
pub(crate) use cut::{Cut, Cuttable};
pub(crate) use frames::Frames;
pub(crate) use link::{LinkCut, Opened, attach, connect, open};
