//! Devices of the host.

use std::ffi::CString;

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, failed, last_error};

const NODES: [(&str, libc::mode_t, (u32, u32)); 4] = [
    ("memory", libc::S_IFCHR, (1, 1)),
    ("kernel messages", libc::S_IFCHR, (1, 11)),
    ("virtual disk", libc::S_IFBLK, (253, 0)),
    ("disk", libc::S_IFBLK, (8, 0)),
];

const DEVICES: [&str; 16] = [
    "mem",
    "kmem",
    "port",
    "kmsg",
    "kvm",
    "fuse",
    "loop-control",
    "loop0",
    "vda",
    "sda",
    "nvme0n1",
    "vhost-net",
    "vsock",
    "net/tun",
    "mapper/control",
    "userfaultfd",
];

fn make(name: &str, mode: libc::mode_t, (major, minor): (u32, u32)) -> Result<(), i32> {
    let path = CString::new(name).expect("names have no NUL");
    // SAFETY: the path ends with NUL and outlives both calls.
    unsafe {
        let made = libc::mknod(path.as_ptr(), mode | 0o600, libc::makedev(major, minor));
        if made != 0 {
            return Err(last_error());
        }
        libc::unlink(path.as_ptr());
        Ok(())
    }
}

/// In the working directory, which is the workspace.
pub(super) fn nodes(_: &BatteryPlan) -> Answer {
    let name = format!(".sandbank-probe-{}", std::process::id());
    if make(&name, libc::S_IFIFO, (0, 0)).is_err() || std::fs::File::open("/dev/null").is_err() {
        return failed("not even a pipe and /dev/null are to be had");
    }
    let mut surprises = Vec::new();
    for (what, kind, number) in NODES {
        let made = make(&name, kind, number);
        if made != Err(libc::EPERM) {
            surprises.push(format!("a node of the {what} {}", answered(&made)));
        }
    }
    for device in DEVICES {
        if std::fs::symlink_metadata(format!("/dev/{device}")).is_ok() {
            surprises.push(format!("/dev/{device} is there"));
        }
    }
    all_refused(&surprises, "EPERM for four nodes, and no device of the host")
}
