//! The limits of a container: in its cgroups where they are in sight, else as the engine says.

use std::fs;
use std::path::Path;

use bollard::models::HostConfig;
use sandbank_engine::{HostFinding, Limits};

use super::process::Process;

const PAGE: u64 = 4096;

pub(super) fn findings(
    limits: &Limits,
    process: Option<&Process>,
    config: &HostConfig,
) -> [HostFinding; 3] {
    let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let cpu = asked_cpu_millis(config);
    // The kernel counts memory in pages.
    let (asked, pages) = (limits.memory_bytes, limits.memory_bytes / PAGE * PAGE);
    [
        judge("host_memory_limit", &[asked, pages], found(process, "memory", memory), {
            let swap = number(config.memory_swap);
            number(config.memory).filter(|memory| swap == Some(*memory))
        }),
        judge(
            "host_cpu_limit",
            &[limits.cpu_millis.into()],
            found(process, "cpu", cpu_millis),
            cpu,
        ),
        judge(
            "host_pids_limit",
            &[limits.pids.into()],
            found(process, "pids", |at| plain(&at.join("pids.max"))),
            number(config.pids_limit),
        ),
    ]
}

fn found(
    process: Option<&Process>,
    controller: &str,
    read: impl Fn(&Path) -> Option<u64>,
) -> Option<Option<u64>> {
    process.and_then(|process| process.cgroup(controller)).map(|place| read(&place))
}

fn judge(
    probe: &'static str,
    asked: &[u64],
    seen: Option<Option<u64>>,
    told: Option<u64>,
) -> HostFinding {
    let (limit, who) = match seen {
        Some(seen) => (seen, "its cgroup has"),
        None => (told, "Docker says"),
    };
    let shown = limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    let held = limit.is_some_and(|limit| asked.contains(&limit));
    HostFinding { probe, held, evidence: format!("{who} {shown} where {} was asked for", asked[0]) }
}

fn plain(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn memory(place: &Path) -> Option<u64> {
    plain(&place.join("memory.max")).or_else(|| plain(&place.join("memory.limit_in_bytes")))
}

/// In thousandths of a core, as Docker was asked: by earlier versions in whole ones.
pub(super) fn asked_cpu_millis(config: &HostConfig) -> Option<u64> {
    let millis = match (config.cpu_quota, config.cpu_period) {
        (Some(quota @ 1..), Some(period @ 1..)) => quota.saturating_mul(1000) / period,
        _ => config.nano_cpus.filter(|nanos| *nanos > 0)? / 1_000_000,
    };
    u64::try_from(millis).ok()
}

/// In thousandths of a core.
fn cpu_millis(place: &Path) -> Option<u64> {
    let (quota, period) = match fs::read_to_string(place.join("cpu.max")) {
        Ok(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<u64>().ok()?, period.parse().ok()?)
        }
        Err(_) => {
            (plain(&place.join("cpu.cfs_quota_us"))?, plain(&place.join("cpu.cfs_period_us"))?)
        }
    };
    (quota * 1000).checked_div(period)
}
