//! System calls of another architecture, whose numbers mean something else.

use sandbank_protocol::containment::BatteryPlan;

use super::answer::Answer;

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn calls(_: &BatteryPlan) -> Answer {
    super::answer::not_tried("this architecture has no second set of calls to try")
}

#[cfg(target_arch = "x86_64")]
pub(super) fn calls(_: &BatteryPlan) -> Answer {
    use super::answer::{all_refused, call, failed};
    use super::child::{self, Ended};

    const X32: libc::c_long = 0x4000_0000;
    const REACHED: i32 = 7;
    const OURS: i32 = 8;
    let attempt = |number: libc::c_long| {
        child::run(move || match call(number, [0; 5]) {
            Ok(_) => REACHED,
            Err(error) => error.min(125),
        })
    };
    if attempt(libc::SYS_getpid) != Ok(Ended::Exited(REACHED)) {
        return failed("a call of this architecture does not work");
    }
    let i386 = child::run(|| {
        const GETPID: u64 = 20;
        match interrupt(GETPID, 0) {
            1.. => REACHED,
            _ if numbers_are_ours() => OURS,
            _ => 1,
        }
    });
    let mut surprises = Vec::new();
    for (name, ended) in [("a 32-bit call", i386), ("an x32 call", attempt(X32 | libc::SYS_getpid))]
    {
        match ended {
            // Without 32-bit support the instruction itself is the end.
            Ok(Ended::Signaled(libc::SIGSYS | libc::SIGSEGV) | Ended::Exited(OURS)) => {}
            Ok(Ended::Exited(REACHED)) => surprises.push(format!("{name} works")),
            other => surprises.push(format!("{name} does not kill its caller: {other:?}")),
        }
    }
    all_refused(&surprises, "both kill their caller, or are calls of this architecture")
}

/// Whether the instruction is only another way to make calls of this architecture, as with gVisor's kernel,
/// and the filter heeds it.
#[cfg(target_arch = "x86_64")]
fn numbers_are_ours() -> bool {
    let refused = interrupt(libc::SYS_unshare as u64, libc::CLONE_NEWUSER as u64);
    let pid = interrupt(libc::SYS_getpid as u64, 0);
    refused == -i64::from(libc::EPERM) && pid == i64::from(std::process::id())
}

/// A call as 32-bit programs make it; its argument is where both architectures look for their first.
#[cfg(target_arch = "x86_64")]
fn interrupt(number: u64, argument: u64) -> i64 {
    let result: i64;
    // SAFETY: the calls that are made take no memory; the kernel may clear these registers. The
    // compiler keeps `rbx` for itself.
    unsafe {
        std::arch::asm!("xchg rbx, {first}", "int 0x80", "xchg rbx, {first}",
            first = inout(reg) argument => _, inlateout("rax") number => result, in("rdi") argument,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _);
    }
    result
}
