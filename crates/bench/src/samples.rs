//! Samples while contenders take turns, before they are summed up.

use std::time::Duration;

use crate::report::{Series, Unit};
use crate::summary::Summary;

/// Collects samples while contenders take turns, in the order they first appear.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<(String, String, Unit, Vec<f64>)>);

impl Samples {
    pub(crate) fn add(&mut self, measure: &str, who: &str, unit: Unit, value: f64) {
        let known = self.0.iter_mut().find(|(m, w, ..)| m == measure && w == who);
        match known {
            Some((.., values)) => values.push(value),
            None => self.0.push((measure.to_owned(), who.to_owned(), unit, vec![value])),
        }
    }

    pub(crate) fn add_time(&mut self, measure: &str, who: &str, took: Duration) {
        self.add(measure, who, Unit::Milliseconds, took.as_secs_f64() * 1e3);
    }

    pub(crate) fn add_rate(&mut self, measure: &str, who: &str, bytes: u64, took: Duration) {
        let rate = bytes as f64 / 1e6 / took.as_secs_f64();
        self.add(measure, who, Unit::MegabytesPerSecond, rate);
    }

    /// Rows of one measure stand together, whatever the order of the samples.
    pub(crate) fn into_series(self) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for (measure, who, unit, values) in self.0 {
            let Some(summary) = Summary::of(&values, unit.better()) else { continue };
            let after = series.iter().rposition(|s| s.measure == measure);
            let place = after.map_or(series.len(), |last| last + 1);
            series.insert(place, Series { measure, who, unit, summary });
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_measure_stand_together() {
        let mut samples = Samples::default();
        for _ in 0..3 {
            samples.add_time("ready", "sandbank", Duration::from_millis(2));
            samples.add_time("destroy", "sandbank", Duration::from_millis(1));
            samples.add_time("ready", "bwrap", Duration::from_millis(3));
        }
        let series = samples.into_series();
        let rows: Vec<_> = series.iter().map(|s| (&*s.measure, &*s.who, s.summary.n)).collect();
        let expected =
            [("ready", "sandbank", 3), ("ready", "bwrap", 3), ("destroy", "sandbank", 3)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn rates_are_in_decimal_megabytes() {
        let mut samples = Samples::default();
        samples.add_rate("up", "sandbank", 256_000_000, Duration::from_millis(500));
        assert_eq!(samples.into_series()[0].summary.p50, 512.0);
    }
}
