//! Files that must not be there, not be readable, or not be writable.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, errno, failed};

const SYSTEM: [&str; 14] = [
    "/", "/usr", "/etc", "/var", "/bin", "/sbin", "/lib", "/opt", "/root", "/run", "/dev", "/sys",
    "/vercel", "/home",
];

/// Makes and removes a file.
fn write_into(directory: &str) -> Result<(), i32> {
    let path = Path::new(directory).join(format!(".sandbank-probe-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&path);
    match made {
        Ok(_) => {
            let _ = fs::remove_file(path);
            Ok(())
        }
        Err(error) => Err(error.raw_os_error().unwrap_or(0)),
    }
}

pub(super) fn read_only_root(_: &BatteryPlan) -> Answer {
    if let Err(error) = write_into(".") {
        // A full workspace is no fault of the root.
        if !matches!(error, libc::ENOSPC | libc::EDQUOT) {
            return failed(format!("not even the workspace can be written: {}", errno(error)));
        }
    }
    let mut surprises = Vec::new();
    let mut tried = 0;
    for directory in SYSTEM.into_iter().filter(|place| Path::new(place).is_dir()) {
        tried += 1;
        match write_into(directory) {
            Err(libc::EROFS) => {}
            // Closed to this user before the kernel looks at the mount.
            Err(libc::EACCES) if is_read_only(directory) => {}
            Err(error) => surprises.push(format!("{directory} gave {}", errno(error))),
            Ok(()) => surprises.push(format!("{directory} is writable")),
        }
    }
    all_refused(&surprises, format!("EROFS in {tried} directories"))
}

/// Covered by `/dev/null` or by an empty directory, or not there at all.
fn is_covered(path: &Path) -> Result<(), String> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.file_type().is_char_device() && found.rdev() == libc::makedev(1, 3) {
        return Ok(());
    }
    let shown = path.display();
    if !found.is_dir() {
        return Err(format!("{shown} is not covered"));
    }
    match fs::read_dir(path).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(entries) => Err(format!("{shown} has {entries} entries")),
        Err(error) => Err(format!("{shown} is not covered: {error}")),
    }
}

pub(super) fn kernel_files(plan: &BatteryPlan) -> Answer {
    let mut some = [0; 1];
    let read = File::open("/proc/meminfo").and_then(|mut file| file.read(&mut some));
    if !matches!(read, Ok(1)) {
        return failed("not even /proc/meminfo can be read");
    }
    let mut surprises: Vec<_> =
        plan.hidden.iter().filter_map(|path| is_covered(Path::new(path)).err()).collect();
    for path in ["/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys"] {
        let flags = libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        if matches!(opened.and_then(|mut file| file.read(&mut some)), Ok(1)) {
            surprises.push(format!("{path} can be read"));
        }
    }
    all_refused(&surprises, format!("{} covered, empty or not there", plan.hidden.len()))
}

const SETTINGS: [&str; 10] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

pub(super) fn kernel_settings(plan: &BatteryPlan) -> Answer {
    if fs::read_to_string("/proc/sys/kernel/ostype").is_err() {
        return failed("not even a sysctl can be read");
    }
    // Opened, never written: opening is what is refused.
    let opens = |path: &&str| OpenOptions::new().write(true).open(path).is_ok();
    let mut surprises: Vec<_> =
        SETTINGS.iter().filter(|p| opens(p)).map(|path| format!("{path} opens")).collect();
    for path in &plan.fixed {
        if Path::new(path).exists() && !is_read_only(path) {
            surprises.push(format!("{path} is not read-only"));
        }
    }
    all_refused(&surprises, "no setting opens for writing; the trees are read-only")
}

pub(super) fn is_read_only(path: &str) -> bool {
    let flags = rustix::fs::statvfs(path).map(|found| found.f_flag);
    flags.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

pub(super) fn leaked_descriptors(_: &BatteryPlan) -> Answer {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return failed("the descriptors cannot be listed");
    };
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let mut surprises = Vec::new();
    for number in numbers {
        // The listing's own descriptor is closed by now.
        if let Ok(target) = fs::read_link(format!("/proc/self/fd/{number}"))
            && number > 2
        {
            surprises.push(format!("descriptor {number} is {}", target.display()));
        }
    }
    let identity = |path: &str| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let root = identity("/");
    for path in ["/..", "/../../..", "/proc/self/root", "/proc/self/root/.."] {
        if root.is_none() || identity(path) != root {
            surprises.push(format!("{path} is not /"));
        }
    }
    let cwd = fs::read_link("/proc/self/cwd").unwrap_or_default();
    if identity(".").is_none() || !cwd.starts_with("/") || !cwd.is_dir() {
        return failed(format!("the working directory is {}", cwd.display()));
    }
    all_refused(&surprises, "three streams; / has no parent")
}

/// Where control sockets and credentials of other systems lie.
const KNOWN: [&str; 8] = [
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "/etc/shadow",
    "/root/.ssh",
];

pub(super) fn host_paths(plan: &BatteryPlan) -> Answer {
    if fs::read_dir(".").is_err() {
        return failed("not even the workspace opens");
    }
    let mut surprises = Vec::new();
    let places = ["", "/proc/1/root", "/proc/self/root/..", "/proc/1/cwd/../../.."];
    for path in plan.unreachable.iter().map(String::as_str).chain(KNOWN) {
        for place in places {
            let whole = format!("{place}{path}");
            if is_reachable(&whole) {
                surprises.push(format!("{whole} is there"));
            }
        }
    }
    surprises.truncate(3);
    let tried = plan.unreachable.len() + KNOWN.len();
    all_refused(&surprises, format!("none of {tried} is there"))
}

/// An empty `/etc/shadow` of the image is nobody's secret.
fn is_reachable(path: &str) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            let mut some = [0; 1];
            matches!(File::open(path).and_then(|mut file| file.read(&mut some)), Ok(1))
        }
        Ok(found) if found.is_dir() => fs::read_dir(path).is_ok(),
        Ok(_) => true,
        Err(_) => false,
    }
}
