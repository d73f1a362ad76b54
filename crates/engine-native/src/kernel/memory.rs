//! How this process gives memory back.

/// Freed memory at the end of each of the allocator's heaps that is kept.
const KEPT_FREE_BYTES: i32 = 8 << 20;

/// Free memory in the allocator's heaps above which it is worth looking for what can go back.
const SPARE_FREE_BYTES: usize = 64 << 20;

/// For the program that is to be the daemon: it concerns every allocation of the process.
/// Buffers of transfers come and go with every piece. Giving each back to the kernel costs a page
/// fault for every 4 KiB of the next one.
pub fn keep_freed_memory() {
    // SAFETY: mallopt takes plain integers, and locks what it changes.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_FREE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_FREE_BYTES);
    }
}

/// To be called now and then, where it may take some milliseconds: after a rush the kernel gets
/// back what only holes keep. `before` is what the last call returned, 0 at first: memory that was
/// given back still counts as free, so only growth is a reason to look again.
pub fn give_back_freed_memory(before: usize) -> usize {
    // SAFETY: both lock what they look at and change.
    #[cfg(target_env = "gnu")]
    unsafe {
        let free = libc::mallinfo2().fordblks;
        if free > before.saturating_add(SPARE_FREE_BYTES) {
            libc::malloc_trim(0);
            return free;
        }
        free.min(before)
    }
    #[cfg(not(target_env = "gnu"))]
    before
}
