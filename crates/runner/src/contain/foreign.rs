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
        let result: u64;
        // SAFETY: getpid takes no argument and touches no memory; the kernel may clear these
        // registers.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("rax") GETPID => result,
                lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _);
        }
        if (result as i64) > 0 { REACHED } else { 1 }
    });
    let mut surprises = Vec::new();
    for (name, ended) in [("a 32-bit call", i386), ("an x32 call", attempt(X32 | libc::SYS_getpid))]
    {
        match ended {
            // Without 32-bit support the instruction itself is the end.
            Ok(Ended::Signaled(libc::SIGSYS | libc::SIGSEGV)) => {}
            Ok(Ended::Exited(REACHED)) => surprises.push(format!("{name} works")),
            other => surprises.push(format!("{name} does not kill its caller: {other:?}")),
        }
    }
    all_refused(&surprises, "both kill their caller")
}
