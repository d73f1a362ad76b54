//! What of `/proc` and `/sys` no machine sees or changes, whoever makes it.

/// Replaced by nothing: keys, kernel addresses and devices are none of a machine's business.
pub const PROC_HIDDEN: &[&str] = &[
    "acpi",
    "asound",
    "interrupts",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "modules",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
];

/// Readable, because programs look there, but never writable.
pub const PROC_FIXED: &[&str] = &["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// Places where the host mounts other file systems, such as `fs/cgroup` and `kernel/security`, are
/// empty directories in a machine's own `/sys`.
pub const SYS_HIDDEN: &[&str] = &["devices/virtual/dmi", "devices/virtual/powercap", "firmware"];

/// What is covered in every machine, and what is read-only, by their paths inside.
pub fn masks() -> (Vec<String>, Vec<String>) {
    let below = |dir: &'static str| move |name: &&str| format!("{dir}/{name}");
    let hidden = PROC_HIDDEN.iter().map(below("/proc"));
    let hidden = hidden.chain(SYS_HIDDEN.iter().map(below("/sys"))).collect();
    let fixed = PROC_FIXED.iter().map(below("/proc")).chain(["/sys".to_owned()]).collect();
    (hidden, fixed)
}
