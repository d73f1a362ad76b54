//! A sandbox's life as a pure function: [`decide`] takes a state and an event, and answers with
//! the next state and what is to be done. No clock, no IO, no task in here; time is an argument.

mod decide;
mod ending;
mod event;
mod lease;
mod observation;
mod rules;
mod state;
mod wakeup;

#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod instructions;
#[cfg(test)]
mod properties;

pub(crate) use decide::decide;
pub(crate) use event::{Action, Event, Observed};
pub(crate) use lease::Lease;
pub(crate) use rules::{Rules, millis};
pub(crate) use state::{Ending, Phase, Standing, State, Step};
pub(crate) use wakeup::next_wakeup;

/// Milliseconds on the boot clock. Signed, because a sandbox may be older than the boot.
pub(crate) type Millis = i64;
