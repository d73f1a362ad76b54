//! Medians and percentiles of samples.

use serde::Serialize;

/// Which end of a scale is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Lower,
    Higher,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    pub n: usize,
    pub p50: f64,
    /// 95 % of the samples were at least as good as this: the slow end, for times and for rates.
    pub p95: f64,
    pub p99: f64,
    pub best: f64,
    pub worst: f64,
}

impl Summary {
    /// None without samples.
    pub fn of(samples: &[f64], better: Better) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        if better == Better::Higher {
            sorted.reverse();
        }
        let (best, worst) = (*sorted.first()?, *sorted.last()?);
        let at = |fraction| quantile(&sorted, fraction);
        Some(Self { n: sorted.len(), p50: at(0.5), p95: at(0.95), p99: at(0.99), best, worst })
    }
}

/// With linear interpolation between the two nearest samples of a sorted, non-empty list.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction * (sorted.len() - 1) as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (position - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Summary::of(&[], Better::Lower), None);
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let one = Summary::of(&[4.0], Better::Lower).unwrap();
        assert_eq!((one.n, one.p50, one.p95, one.best, one.worst), (1, 4.0, 4.0, 4.0, 4.0));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(Summary::of(&[4.0, 1.0, 3.0, 2.0], Better::Lower).unwrap().p50, 2.5);
    }

    #[test]
    fn p95_is_the_slow_end_of_times_and_of_rates() {
        let samples: Vec<f64> = (0..=100).map(f64::from).collect();
        let times = Summary::of(&samples, Better::Lower).unwrap();
        assert_eq!((times.p50, times.p95, times.best, times.worst), (50.0, 95.0, 0.0, 100.0));
        let rates = Summary::of(&samples, Better::Higher).unwrap();
        assert_eq!((rates.p50, rates.p95, rates.best, rates.worst), (50.0, 5.0, 100.0, 0.0));
    }
}
