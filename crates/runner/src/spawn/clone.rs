//! The clone itself: memory shared, caller suspended until the child execs or exits.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::child::{self, Task};
use super::stack::Stack;

/// Starts a child that runs [`child::run`] on `task`, in the given cgroup v2 directory if any.
pub(super) fn vfork(
    stack: &Stack,
    task: &mut Task,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<i32> {
    match cgroup {
        Some(directory) => clone_into(stack, task, directory),
        None => {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            // SAFETY: the child has a stack of its own and runs `child::run`, which makes system
            // calls only and never returns; the caller is suspended and keeps `task` alive.
            check(unsafe {
                libc::clone(child::run, stack.top(), flags, std::ptr::from_mut(task).cast())
            })
        }
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// With `CLONE_INTO_CGROUP`, which only `clone3` has and for which libc has no wrapper.
fn clone_into(stack: &Stack, task: &mut Task, directory: BorrowedFd<'_>) -> io::Result<i32> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: all fields are integers, for which zero is valid.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64 | CLONE_INTO_CGROUP;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.stack = stack.bottom() as u64;
    arguments.stack_size = (stack.top() as u64) - (stack.bottom() as u64);
    arguments.cgroup = directory.as_raw_fd() as u64;
    // SAFETY: as for `libc::clone` above.
    let result = unsafe { clone3(&arguments, child::run, std::ptr::from_mut(task).cast()) };
    match i32::try_from(result) {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(io::Error::from_raw_os_error(-(result as i32))),
    }
}

type Entry = extern "C" fn(*mut libc::c_void) -> libc::c_int;

/// Returns the pid or a negative errno. The child starts on the stack named in `arguments`, so
/// the caller's frame is never touched by it.
///
/// # Safety
/// `entry` must never return, and everything behind `argument` must outlive the child's exec.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(arguments: &libc::clone_args, entry: Entry, argument: *mut libc::c_void) -> isize {
    let result: isize;
    // SAFETY: the caller's promise; the kernel clobbers rcx and r11 only.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {argument}",
            "call {entry}",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") std::ptr::from_ref(arguments),
            in("rsi") size_of::<libc::clone_args>(),
            argument = in(reg) argument,
            entry = in(reg) entry,
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// See the x86-64 one.
///
/// # Safety
/// As there.
#[cfg(target_arch = "aarch64")]
unsafe fn clone3(arguments: &libc::clone_args, entry: Entry, argument: *mut libc::c_void) -> isize {
    let result: isize;
    // SAFETY: the caller's promise; the kernel clobbers x0 only.
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, {argument}",
            "blr {entry}",
            "brk 1",
            "2:",
            inlateout("x0") std::ptr::from_ref(arguments) as isize => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            argument = in(reg) argument,
            entry = in(reg) entry,
        );
    }
    result
}
