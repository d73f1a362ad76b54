//! Limits: what they are, and that running into one stops the runner.

use std::fs::{self, OpenOptions};
use std::io::Write;

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, errno, failed, last_error, not_tried};
use super::child;

fn resource(name: &str) -> Option<libc::__rlimit_resource_t> {
    Some(match name {
        "CORE" => libc::RLIMIT_CORE,
        "NOFILE" => libc::RLIMIT_NOFILE,
        "NPROC" => libc::RLIMIT_NPROC,
        "MEMLOCK" => libc::RLIMIT_MEMLOCK,
        "NICE" => libc::RLIMIT_NICE,
        "RTPRIO" => libc::RLIMIT_RTPRIO,
        _ => return None,
    })
}

pub(super) fn resources(plan: &BatteryPlan) -> Answer {
    if plan.limits.is_empty() {
        return not_tried("which limits there should be is not known");
    }
    let mut surprises = Vec::new();
    for (name, most) in &plan.limits {
        let Some(resource) = resource(name) else {
            surprises.push(format!("{name} is not a limit we know"));
            continue;
        };
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel fills in the struct.
        if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
            surprises.push(format!("{name} cannot be read"));
        } else if limit.rlim_max > *most {
            surprises.push(format!("{name} is {}", limit.rlim_max));
        }
    }
    let set = |current, maximum| {
        let limit = libc::rlimit { rlim_cur: current, rlim_max: maximum };
        // SAFETY: the kernel reads the struct.
        match unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    };
    let raised = set(0, libc::RLIM_INFINITY);
    if raised != Err(libc::EPERM) {
        surprises.push(format!("raising CORE {}", answered(&raised)));
    }
    if set(0, 0).is_err() {
        return failed("a limit cannot even be lowered");
    }
    all_refused(&surprises, format!("{} limits, none of which can be raised", plan.limits.len()))
}

/// Children that sleep, up to the limit; all are gone when this returns.
pub(super) fn burst(plan: &BatteryPlan) -> Answer {
    let Some(most) = plan.burst else {
        return not_tried("others may need the processes; the limit is read on the host");
    };
    let mut children = Vec::new();
    let mut stopped = None;
    while children.len() < most as usize {
        match child::sleeper() {
            Ok(pid) => children.push(pid),
            Err(error) => {
                stopped = Some(error);
                break;
            }
        }
    }
    let started = children.len();
    for pid in children {
        let _ = child::end(pid);
    }
    match stopped {
        Some(libc::EAGAIN) if started > 0 => {
            Ok(format!("EAGAIN after {started} with a limit of {most}"))
        }
        Some(error) => failed(format!("{} after {started} with a limit of {most}", errno(error))),
        None => failed(format!("{started} started with a limit of {most}")),
    }
}

const CHUNK: usize = 1 << 20;

pub(super) fn fill(plan: &BatteryPlan) -> Answer {
    let Some(quota) = plan.fill else {
        return not_tried("no quota was asked for, or others may need the space");
    };
    let path = format!(".sandbank-probe-{}", std::process::id());
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) => return failed(format!("nothing can be written: {error}")),
    };
    let chunk = vec![0x5a; CHUNK];
    let mut written = 0;
    let stopped = loop {
        if written >= 2 * quota {
            break None;
        }
        match file.write(&chunk) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => break error.raw_os_error(),
        }
    };
    drop(file);
    let _ = fs::remove_file(&path);
    match stopped {
        Some(libc::EDQUOT | libc::ENOSPC) if written > 0 => {
            Ok(format!("stopped after {written} bytes of {quota}"))
        }
        Some(error) => failed(format!("{} after {written} bytes of {quota}", errno(error))),
        None => failed(format!("{written} bytes were written with a quota of {quota}")),
    }
}
