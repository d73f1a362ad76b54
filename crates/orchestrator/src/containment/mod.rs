//! Whether sandboxes hold what is in them: the battery of attacks, run in a canary before the
//! daemon serves, or in a living sandbox when asked.
//!
//! The table of probes is [`sandbank_protocol::containment`]. What a living sandbox answers is a
//! hostile sandbox's word, like everything a runner says; the probes of the host's side, and a
//! canary, in which nothing hostile ever ran, are not.

mod battery;
mod canary;
mod clearance;
mod import;
mod judge;
mod record;
mod report;
mod self_test;

pub use report::{Containment, ProbeResult, ProbeStanding};
pub use self_test::{SelfTest, Tested, attack_all, forget_all_but};

pub(crate) use battery::run;
pub(crate) use clearance::{Clearance, catch_up};
pub(crate) use import::{ImageSource, import};
pub(crate) use judge::judge;
