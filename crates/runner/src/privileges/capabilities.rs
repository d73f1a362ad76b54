//! Capabilities: none can be gained again, and the one needed for that is given up, too.

use super::ConfineError;

/// From linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;
const CAP_KILL: u32 = 5;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
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

/// Drops everything but what the runner needs to start and signal commands, and to drop the rest.
pub(super) fn keep_only_needed() -> Result<(), ConfineError> {
    let kept = [CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP];
    restrict(kept.iter().fold(0, |kept, capability| kept | 1 << capability), 0)
}

/// Drops SETPCAP, and empties the inheritable and with it the ambient set.
pub(super) fn give_up_setpcap() -> Result<(), ConfineError> {
    restrict(!(1 << CAP_SETPCAP), u32::MAX)
}

/// Keeps at most these of the low and of the high half.
fn restrict(low: u32, high: u32) -> Result<(), ConfineError> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, which is two sets.
    if unsafe { libc::syscall(libc::SYS_capget, &mut header, sets.as_mut_ptr()) } != 0 {
        return Err(ConfineError::last("capget"));
    }
    for (set, kept) in sets.iter_mut().zip([low, high]) {
        set.effective &= kept;
        set.permitted &= kept;
        set.inheritable = 0;
    }
    // SAFETY: as above; the kernel only reads them.
    if unsafe { libc::syscall(libc::SYS_capset, &header, sets.as_ptr()) } != 0 {
        return Err(ConfineError::last("capset"));
    }
    Ok(())
}
