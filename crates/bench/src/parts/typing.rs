//! People who type, and what is expected of what shows it.

use std::time::Duration;

use tokio::time::{Instant, interval_at};

use crate::report::{Goal, SUBJECT, Section, Unit};

const GOAL_P50_MS: f64 = 2.0;
const GOAL_P99_MS: f64 = 10.0;

/// Between two characters of each, when everybody types.
pub(super) const BETWEEN_KEYS: Duration = Duration::from_millis(100);

pub(super) fn one_types(open: usize) -> String {
    format!("{SUBJECT}, {open} open, one types")
}

pub(super) fn all_type(open: usize) -> String {
    format!("{SUBJECT}, {open} open, all type")
}

/// Presses a key as often as `keys` says, at a steady pace. Of `count` people each, by their
/// `number`, begins a little later than the one before.
pub(super) async fn keep_typing(
    (number, count): (usize, usize),
    keys: usize,
    mut press: impl AsyncFnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(keys);
    let offset = BETWEEN_KEYS * number as u32 / count as u32;
    let mut clock = interval_at(Instant::now() + offset, BETWEEN_KEYS);
    for _ in 0..keys {
        clock.tick().await;
        times.push(press().await?);
    }
    Ok(times)
}

pub(super) fn figures(section: &mut Section, measure: &str, who: &str) {
    let Some(summary) = section.summary(measure, who).copied() else { return };
    let (p50, p99) = (Goal::AtMost(GOAL_P50_MS), Goal::AtMost(GOAL_P99_MS));
    section.figure(format!("{measure}, p50: {who}"), summary.p50, Unit::Milliseconds, p50);
    section.figure(format!("{measure}, p99: {who}"), summary.p99, Unit::Milliseconds, p99);
}
