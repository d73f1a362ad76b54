//! Mounts: which there are, and that none can be changed.

use std::collections::BTreeSet;
use std::ffi::CString;

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, failed, last_error};
use super::calls::{BAD, refusals};
use super::files::is_read_only;

struct Mount {
    target: String,
    read_only: bool,
    kind: String,
}

fn list() -> Option<(String, Vec<Mount>)> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let parse = |line: &str| {
        let (own, super_block) = line.split_once(" - ")?;
        let mut fields = own.split(' ');
        let target = fields.nth(4)?.to_owned();
        let read_only = fields.next()?.split(',').any(|option| option == "ro");
        let kind = super_block.split(' ').next()?.to_owned();
        Some(Mount { target, read_only, kind })
    };
    let mounts = text.lines().map(parse).collect::<Option<Vec<_>>>()?;
    Some((text, mounts)).filter(|(_, mounts)| !mounts.is_empty())
}

/// Without the filter: a bad pointer, unknown flags, or a plain open.
const CALLS: &[(&str, libc::c_long, [usize; 5])] = &[
    ("mount", libc::SYS_mount, [0, 0, BAD, 0, 0]),
    ("umount2", libc::SYS_umount2, [BAD, 0xffff, 0, 0, 0]),
    ("pivot_root", libc::SYS_pivot_root, [BAD, BAD, 0, 0, 0]),
    ("chroot", libc::SYS_chroot, [BAD, 0, 0, 0, 0]),
    ("open_tree", libc::SYS_open_tree, [usize::MAX, BAD, 0, 0, 0]),
    ("move_mount", libc::SYS_move_mount, [usize::MAX, BAD, usize::MAX, BAD, 0]),
    ("fsopen", libc::SYS_fsopen, [BAD, usize::MAX, 0, 0, 0]),
    ("fsconfig", libc::SYS_fsconfig, [usize::MAX, 0, 0, 0, 0]),
    ("fsmount", libc::SYS_fsmount, [usize::MAX, usize::MAX, 0, 0, 0]),
    ("fspick", libc::SYS_fspick, [usize::MAX, BAD, usize::MAX, 0, 0]),
    ("mount_setattr", libc::SYS_mount_setattr, [usize::MAX, BAD, usize::MAX, 0, 0]),
];

pub(super) fn calls(_: &BatteryPlan) -> Answer {
    let Some((before, mounts)) = list() else { return failed("the mounts cannot be listed") };
    let mut surprises = refusals(CALLS, libc::EPERM);
    if !surprises.is_empty() {
        // What gets past the filter is not tried on real mounts.
        return failed(surprises.join("; "));
    }
    let mut remounted = 0;
    for mount in mounts.iter().filter(|mount| mount.read_only) {
        let result = remount_writable(&mount.target);
        if result != Err(libc::EPERM) {
            surprises.push(format!("a remount of {} {}", mount.target, answered(&result)));
        }
        remounted += 1;
    }
    if list().is_none_or(|(after, _)| after != before) {
        surprises.push("the mounts are not what they were".to_owned());
    }
    let calls = CALLS.len();
    all_refused(&surprises, format!("EPERM for {calls} calls and {remounted} remounts"))
}

fn remount_writable(target: &str) -> Result<(), i32> {
    let Ok(target) = CString::new(target) else { return Err(libc::EINVAL) };
    let none = std::ptr::null();
    // SAFETY: the path ends with NUL and outlives the call; the rest may be null for a remount.
    let result = unsafe {
        libc::mount(none, target.as_ptr(), none, libc::MS_REMOUNT | libc::MS_BIND, none.cast())
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// What would move a process, lift a limit, or run a program of the host's.
const CONTROLS: [&str; 6] = [
    "cgroup.procs",
    "tasks",
    "release_agent",
    "notify_on_release",
    "memory.limit_in_bytes",
    "memory.max",
];

/// Where they are shown: read-only, of nobody else, and nothing in them opens for writing.
fn shown_cgroups(mounts: &[Mount]) -> Answer {
    let mut surprises = Vec::new();
    // One may lie over another, or be covered: what counts is what is reached by its path.
    let shown: BTreeSet<_> = mounts
        .iter()
        .filter(|mount| mount.kind.starts_with("cgroup"))
        .map(|mount| mount.target.as_str())
        .filter(|target| std::path::Path::new(target).exists())
        .collect();
    for &mount in &shown {
        let target = std::path::Path::new(mount);
        if !is_read_only(mount) {
            surprises.push(format!("{mount} is writable"));
        }
        // Its own is the root of what it sees; above it there would be others beside it.
        let mut entries = std::fs::read_dir(target).into_iter().flatten().flatten();
        if let Some(other) = entries.find(|entry| entry.path().is_dir()) {
            surprises.push(format!("{} is there", other.path().display()));
        }
        for name in CONTROLS {
            let opened = std::fs::OpenOptions::new().write(true).open(target.join(name));
            if opened.is_ok() {
                surprises.push(format!("{name} of {mount} opens for writing"));
            }
        }
    }
    surprises.truncate(3);
    all_refused(&surprises, format!("{} of its own, read-only", shown.len()))
}

pub(super) fn cgroups(plan: &BatteryPlan) -> Answer {
    let Some((_, mounts)) = list() else { return failed("the mounts cannot be listed") };
    if plan.cgroups_shown {
        return shown_cgroups(&mounts);
    }
    let mounted = mounts.iter().filter(|mount| mount.kind.starts_with("cgroup"));
    let mut surprises: Vec<_> =
        mounted.map(|mount| format!("{} is a {} mount", mount.target, mount.kind)).collect();
    surprises.truncate(3);
    for entry in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().take(3) {
        surprises.push(format!("{} is there", entry.path().display()));
    }
    all_refused(&surprises, "none is mounted, and /sys/fs/cgroup is empty")
}
