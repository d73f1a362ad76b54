//! Figures with three significant digits: more would pretend to a precision that is not there.

pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "–".to_owned()
    } else if size >= 99.95 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.9995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn three_digits_are_shown_and_whole_numbers_stay_whole() {
        let shown = [1234.5, 99.96, 12.34, 9.999, 1.234, 0.9999, 0.0514, 200.0, -3.21].map(short);
        assert_eq!(shown, ["1234", "100", "12.3", "10.0", "1.23", "1.00", "0.051", "200", "-3.21"]);
        assert_eq!(short(f64::NAN), "–");
    }
}
