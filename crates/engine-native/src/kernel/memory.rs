//! How this process gives memory back.

/// Freed memory at the end of each of the allocator's heaps that is kept.
const KEPT_FREE_BYTES: i32 = 8 << 20;

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
