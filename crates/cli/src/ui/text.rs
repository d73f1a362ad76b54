//! Numbers, times and hostile text as people read them; and the same units as they are typed.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Shows control characters instead of letting them act on the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            let _ = write!(out, "{}", char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let places = usize::from(value < 10.0 && value.fract() > 0.05);
    format!("{value:.places$} {}", UNITS[unit])
}

/// The largest unit that leaves a number worth reading.
pub(crate) fn duration(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago, or `-` when the moment is unknown.
pub(crate) fn since(moment_ms: u64) -> String {
    match moment_ms {
        0 => "-".to_owned(),
        moment => duration(Duration::from_millis(now_ms().saturating_sub(moment))),
    }
}

/// How long until, or `-` when there is no such moment.
pub(crate) fn until(moment_ms: Option<u64>) -> String {
    let Some(moment) = moment_ms else { return "-".to_owned() };
    duration(Duration::from_millis(moment.saturating_sub(now_ms())))
}

/// `500ms`, `30s`, `5m`, `2h`; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = (digits.trim(), text[digits.len()..].trim());
    let millis_per_unit = match unit {
        "ms" => 1.0,
        "" | "s" => 1_000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return Err(format!("{unit:?} is not a unit: use ms, s, m or h, as in 30s")),
    };
    let value: f64 = number.parse().map_err(|_| format!("{text:?} is not a time such as 30s"))?;
    let millis = value * millis_per_unit;
    if !(1.0..=3.2e10).contains(&millis) {
        return Err("a time is at least 1ms and at most a year".to_owned());
    }
    Ok(Duration::from_millis(millis as u64))
}

/// `512m`, `2g`, `1.5GiB`; a bare number is MiB, as in the API.
pub(crate) fn parse_mebibytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let factor = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" | "m" => 1.0,
        "g" => 1024.0,
        "k" => 1.0 / 1024.0,
        _ => return Err(format!("{unit:?} is not a unit: use k, m or g, as in 512m")),
    };
    let value: f64 =
        digits.trim().parse().map_err(|_| format!("{text:?} is not a size such as 512m"))?;
    let size = value * factor;
    if !(1.0..=1e9).contains(&size) {
        return Err("a size is at least 1m".to_owned());
    }
    Ok(size.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_cannot_drive_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable("grün 漢"), "grün 漢");
    }

    #[test]
    fn sizes_read_naturally() {
        let cases =
            [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 31, "2 GiB")];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_are_typed_with_a_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("1.5h"), Ok(Duration::from_secs(5400)));
        for bad in ["", "s", "-1s", "0", "5 parsecs", "nan", "inf"] {
            assert!(parse_duration(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn memory_is_typed_with_a_unit() {
        for (text, size) in [("512m", 512), ("2g", 2048), ("1.5GiB", 1536), ("256", 256)] {
            assert_eq!(parse_mebibytes(text), Ok(size));
        }
        for bad in ["", "x", "2t", "-1g", "0"] {
            assert!(parse_mebibytes(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
