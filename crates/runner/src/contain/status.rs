//! What the kernel says of this process, and which others it shows.

use std::os::unix::fs::MetadataExt;

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, call, failed, last_error};

const SETS: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

fn field(status: &str, name: &str) -> Option<String> {
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
}

pub(super) fn capability_sets(_: &BatteryPlan) -> Answer {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut surprises = Vec::new();
    for set in SETS {
        match field(&status, set) {
            Some(bits) if bits.bytes().all(|digit| digit == b'0') && !bits.is_empty() => {}
            Some(bits) => surprises.push(format!("{set} is {bits}")),
            None => surprises.push(format!("{set} cannot be read")),
        }
    }
    all_refused(&surprises, "all five sets are empty")
}

pub(super) fn no_new_privileges(_: &BatteryPlan) -> Answer {
    // SAFETY: plain integers.
    match unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } {
        1 => Ok("it is set, for good".to_owned()),
        0 => failed("it is not set"),
        _ => failed(format!("the kernel does not tell: {}", last_error())),
    }
}

pub(super) fn seccomp_filter(_: &BatteryPlan) -> Answer {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if field(&status, "Seccomp").as_deref() != Some("2") {
        return failed("this process has no filter");
    }
    /// Newer than any kernel.
    const UNKNOWN: libc::c_long = 9_999;
    match call(UNKNOWN, [0; 5]) {
        Err(libc::ENOSYS) => Ok("filtered; an unknown call gives ENOSYS".to_owned()),
        other => failed(format!("an unknown call {}", answered(&other))),
    }
}

/// The runner, in every sandbox.
const FIRST: i32 = 1;

/// Only our own user's processes show; our own is another's by its files, since nobody may look
/// into it.
pub(super) fn other_processes(plan: &BatteryPlan) -> Answer {
    // SAFETY: plain integers.
    let (own, user) = unsafe { (libc::getpid(), libc::geteuid()) };
    let Ok(entries) = std::fs::read_dir("/proc") else { return failed("/proc cannot be listed") };
    let mut seen = Vec::new();
    let mut surprises = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        seen.push(pid);
        match entry.metadata() {
            Ok(_) if pid == FIRST && plan.runner_shown => {}
            Ok(found) if pid != own && found.uid() != user => {
                surprises.push(format!("process {pid} of user {} shows", found.uid()));
            }
            _ => {}
        }
    }
    if !seen.contains(&own) {
        return failed("this process does not see itself");
    }
    surprises.truncate(3);
    all_refused(&surprises, format!("{} of its own user, none of others", seen.len()))
}
