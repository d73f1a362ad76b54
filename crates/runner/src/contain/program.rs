//! The runner's program, which this process runs too: one that all sandboxes share, in a sealed
//! memory file or on a mount that none of them can write to.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

use sandbank_protocol::containment::{BatteryPlan, PROGRAM};

use super::answer::{Answer, all_refused, call, failed};

fn refused(surprises: &mut Vec<String>, name: &str, worked: bool) {
    if worked {
        surprises.push(format!("{name} works"));
    }
}

pub(super) fn runner(_: &BatteryPlan) -> Answer {
    let link = std::fs::read_link(PROGRAM).unwrap_or_default();
    let in_memory = link.to_string_lossy().starts_with("/memfd:");
    let Ok(program) = std::fs::File::open(PROGRAM) else {
        return failed("it cannot be read, so nothing can be said");
    };
    let mut surprises = Vec::new();
    let fd = program.as_raw_fd() as usize;
    refused(
        &mut surprises,
        "truncating it by descriptor",
        call(libc::SYS_ftruncate, [fd, 1, 0, 0, 0]).is_ok(),
    );
    let hole = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as usize;
    refused(
        &mut surprises,
        "punching a hole",
        call(libc::SYS_fallocate, [fd, hole, 0, 4096, 0]).is_ok(),
    );
    refused(
        &mut surprises,
        "changing its mode",
        call(libc::SYS_fchmod, [fd, 0o777, 0, 0, 0]).is_ok(),
    );
    refused(
        &mut surprises,
        "taking it over",
        call(libc::SYS_fchown, [fd, 1000, 1000, 0, 0]).is_ok(),
    );
    // A seal can be added where none forbids it, which would not be ours to decide.
    let seals = call(libc::SYS_fcntl, [fd, libc::F_GET_SEALS as usize, 0, 0, 0]).unwrap_or(0);
    let needed = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    if in_memory && seals as i32 & needed != needed {
        surprises.push(format!("its seals are {seals:#x}"));
    }
    let mount = rustix::fs::fstatvfs(&program).map(|found| found.f_flag);
    let read_only = mount.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::RDONLY));
    if !in_memory && !read_only {
        surprises.push(format!("{} is on a writable mount", link.display()));
    }
    // What opens for writing must still not be written.
    if let Ok(writable) = OpenOptions::new().write(true).open(PROGRAM) {
        use std::os::unix::fs::FileExt;
        refused(&mut surprises, "writing to it", writable.write_at(b"\x7f", 0).is_ok());
        refused(
            &mut surprises,
            "changing its mode",
            writable.set_permissions(PermissionsExt::from_mode(0o777)).is_ok(),
        );
    }
    refused(
        &mut surprises,
        "truncating it by path",
        OpenOptions::new().write(true).truncate(true).open(PROGRAM).is_ok(),
    );
    let runnable = program.metadata().is_ok_and(|found| found.len() > 0);
    if !runnable {
        surprises.push("it is empty".to_owned());
    }
    let kept = if in_memory { "sealed" } else { "on a read-only mount" };
    all_refused(&surprises, format!("{kept}, and nothing of it can be changed"))
}
