//! The stack of a child between clone and exec.

use std::io;

use crate::limits::CHILD_STACK_BYTES;

/// One mapping for all children: the runner is suspended while a child uses it.
pub(super) struct Stack {
    base: *mut libc::c_void,
}

/// Below the stack, so that an overflow faults instead of overwriting the runner's memory.
const GUARD_BYTES: usize = 64 << 10;

impl Stack {
    pub(super) fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let bytes = GUARD_BYTES + CHILD_STACK_BYTES;
        // SAFETY: a fresh anonymous mapping touches no existing memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { base };
        // SAFETY: the range is the beginning of the mapping just made.
        match unsafe { libc::mprotect(base, GUARD_BYTES, libc::PROT_NONE) } {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Lowest usable address.
    pub(super) fn bottom(&self) -> *mut libc::c_void {
        self.base.wrapping_byte_add(GUARD_BYTES)
    }

    /// Where a stack that grows down begins; page-aligned.
    pub(super) fn top(&self) -> *mut libc::c_void {
        self.bottom().wrapping_byte_add(CHILD_STACK_BYTES)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no child runs while `self` can be dropped.
        unsafe { libc::munmap(self.base, GUARD_BYTES + CHILD_STACK_BYTES) };
    }
}
