# Prints what a command in a sandbox is and has, one "name: value" per line.
import os, resource, stat

status = dict(
    line.rstrip("\n").split(":\t", 1)
    for line in open("/proc/self/status")
    if ":\t" in line
)
for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"]:
    print(f"{name}: {status[name]}")
for name in ["Uid", "Gid", "Groups"]:
    print(f"{name}: {' '.join(status[name].split())}")

for name in ["CORE", "NOFILE", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO"]:
    limits = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
    bound = {"NOFILE": 65536, "MSGQUEUE": 819200}.get(name)
    if bound:
        # Never above ours, and lower where the host's own limit is.
        limits = [f"at most {bound}" if 0 <= limit <= bound else limit for limit in limits]
    print(f"rlimit {name}: {limits[0]}, {limits[1]}")

# The listing itself is one descriptor.
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
print(f"descriptors: {[fd for fd in fds if fd < 3 or os.path.exists(f'/proc/self/fd/{fd}')]}")

runner = open("/proc/1/status").read() if os.access("/proc/1/status", os.R_OK) else "hidden"
print(f"runner as seen by a command: {'hidden' if runner == 'hidden' else 'visible'}")


def unescape(text):
    return text.encode().decode("unicode_escape")


for line in open("/proc/self/mountinfo"):
    fields = line.split()
    target, options = unescape(fields[4]), fields[5].split(",")
    kind = fields[fields.index("-") + 1]
    flags = [o for o in options if o in ("ro", "rw", "nosuid", "nodev", "noexec", "idmapped")]
    if target.startswith(("/usr", "/etc", "/lib", "/bin", "/sbin", "/opt")):
        # Which binds the host image needs differs from host to host; how they are made must not.
        if "ro" not in options or "nosuid" not in options or "nodev" not in options:
            print(f"mount {target}: {kind} {' '.join(flags)}")
        continue
    if target.startswith(("/proc/", "/sys/")):
        # Which files there are to mask depends on the kernel; a mask is read-only or a device.
        masked = "ro" in options or stat.S_ISCHR(os.stat(target).st_mode)
        if not masked:
            print(f"mount {target}: {kind} {' '.join(flags)}")
        continue
    kind = kind if kind in ("proc", "sysfs", "tmpfs", "devpts", "mqueue") else "disk"
    print(f"mount {target}: {kind} {' '.join(flags)}")


def writable(path):
    try:
        probe = os.path.join(path, ".probe")
        open(probe, "w").close()
        os.unlink(probe)
        return "yes"
    except OSError as error:
        return error.strerror


for path in ["/", "/usr", "/etc", "/var", "/run", "/dev", "/proc", "/sys", "/tmp", "/dev/shm",
             "/vercel/sandbox/workspace", "/workspace", "/home/user"]:
    print(f"write to {path}: {writable(path)}")



def readable(path):
    try:
        with open(path, "rb") as file:
            return "something" if file.read(1) else "nothing"
    except OSError:
        return "nothing"


for path in ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/kallsyms", "/proc/1/environ",
             "/proc/1/maps", "/sys/firmware/dmi/tables/DMI", "/etc/shadow"]:
    print(f"read from {path}: {readable(path)}")
for path in ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches"]:
    print(f"open {path} for writing: {'yes' if os.access(path, os.W_OK) else 'no'}")

print(f"devices: {' '.join(sorted(os.listdir('/dev')))}")
