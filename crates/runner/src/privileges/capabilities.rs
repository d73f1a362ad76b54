//! Capabilities: none can be gained again, and the one needed for that is given up, too.

use super::ConfineError;

/// From linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;
const CAP_SETPCAP: u32 = 8;
const HIGHEST_POSSIBLE: libc::c_ulong = 63;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Empties the bounding set, so that no exec, set-user-id or not, raises a capability.
pub(super) fn drop_bounding_set() -> Result<(), ConfineError> {
    for capability in 0..=HIGHEST_POSSIBLE {
        // SAFETY: PR_CAPBSET_READ takes plain integers.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) } {
            0 => continue,
            // The kernel knows no capability this high.
            -1 => break,
            _ => {}
        }
        // SAFETY: PR_CAPBSET_DROP takes plain integers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            return Err(ConfineError::last("PR_CAPBSET_DROP"));
        }
    }
    Ok(())
}

/// Drops SETPCAP, and empties the inheritable and with it the ambient set.
pub(super) fn give_up_setpcap() -> Result<(), ConfineError> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, which is two sets.
    if unsafe { libc::syscall(libc::SYS_capget, &mut header, sets.as_mut_ptr()) } != 0 {
        return Err(ConfineError::last("capget"));
    }
    sets[0].effective &= !(1 << CAP_SETPCAP);
    sets[0].permitted &= !(1 << CAP_SETPCAP);
    sets.iter_mut().for_each(|set| set.inheritable = 0);
    // SAFETY: as above; the kernel only reads them.
    if unsafe { libc::syscall(libc::SYS_capset, &header, sets.as_ptr()) } != 0 {
        return Err(ConfineError::last("capset"));
    }
    Ok(())
}
