//! Looks whether the mounts came out as meant. The kernel sometimes mounts read-only without
//! saying so, and a root that is writable would be worse.

use std::io;

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags};
use sandbank_protocol::WORKSPACE;

pub(super) fn root_is_read_only() -> io::Result<()> {
    let flags = rustix::fs::statvfs("/")?.f_flag;
    if flags.contains(StatVfsMountFlags::RDONLY) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOTUNIQ))
    }
}

/// This process still has every right here, so only a read-only mount can refuse.
pub(super) fn workspace_is_writable() -> io::Result<()> {
    Ok(rustix::fs::accessat(CWD, WORKSPACE, Access::WRITE_OK, AtFlags::EACCESS)?)
}
