//! Memory of the machine and of one process, from `/proc`.

use std::fs;

use anyhow::Context;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProcessMemory {
    pub(crate) resident_mb: f64,
    /// Highest since the start, or since [`reset_peak`].
    pub(crate) peak_mb: f64,
}

pub(crate) fn available_mb() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    field_mb(&text, "MemAvailable").context("no MemAvailable in /proc/meminfo")
}

pub(crate) fn total_mb() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    field_mb(&text, "MemTotal").context("no MemTotal in /proc/meminfo")
}

pub(crate) fn of_process(pid: u32) -> anyhow::Result<ProcessMemory> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let field = |name| field_mb(&text, name).with_context(|| format!("no {name} in {path}"));
    Ok(ProcessMemory { resident_mb: field("VmRSS")?, peak_mb: field("VmHWM")? })
}

/// Makes the next peak count from now; where the kernel refuses, the peak is since the start.
pub(crate) fn reset_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// `Name:   123 kB` in decimal megabytes.
fn field_mb(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmRSSExtra:\t 9 kB\nVmRSS:\t    1000 kB\nVmHWM:\t 2000 kB\n";
        assert_eq!(field_mb(text, "VmRSS"), Some(1.024));
        assert_eq!(field_mb(text, "Vm"), None);
        assert_eq!(field_mb(text, "VmHWM"), Some(2.048));
    }

    #[test]
    fn this_process_has_memory() {
        let own = of_process(std::process::id()).unwrap();
        assert!(own.resident_mb > 0.0 && own.peak_mb >= own.resident_mb);
        assert!(available_mb().unwrap() < total_mb().unwrap());
        assert!(open_files(std::process::id()) > 0);
    }
}
