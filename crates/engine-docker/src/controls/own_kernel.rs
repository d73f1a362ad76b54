//! Runtimes whose containers have a kernel of their own, as gVisor's have: what that kernel lacks
//! of what a machine relies on. It stands between the machine and the host's kernel, so who chose
//! it may well go without; but that is for the configuration to say, by name.

use bollard::models::SystemInfo;
use sandbank_engine::Control;

/// By the name that Docker knows it by, or the program's.
pub(super) fn has_own_kernel(info: &SystemInfo, runtime: &str) -> bool {
    let path = info.runtimes.as_ref().and_then(|known| known.get(runtime)?.path.as_deref());
    let program = path.and_then(|path| path.rsplit('/').next());
    [Some(runtime), program].into_iter().flatten().any(|name| name.contains("runsc"))
}

/// Found by attacking machines of it: `tests/runtime.rs`.
pub(super) const LACKS: [(Control, &str); 7] = [
    (Control::Namespaces, "gVisor mounts cgroups of its own kernel writable to the machine's root"),
    (Control::ReadOnlyRoot, "gVisor's /dev is writable to the machine's root"),
    (
        Control::MaskedKernelFiles,
        "gVisor covers no kernel files; those of its /proc and /sys are its own kernel's",
    ),
    (
        Control::NoCapabilities,
        "gVisor does not tell all sets of capabilities, and shows devices of its own",
    ),
    (Control::Landlock, "gVisor's kernel has no landlock"),
    (
        Control::PidsLimit,
        "gVisor's own threads count as the machine's, so its limit is several times as high, and \
         where that is reached the machine ends",
    ),
    (
        Control::SeparateRunnerIdentity,
        "gVisor shows the runner's environment, memory map and descriptors' names to everybody in \
         the machine",
    ),
];

pub(super) const FIX: &str = "use a runtime on Linux's own kernel, such as runc";
