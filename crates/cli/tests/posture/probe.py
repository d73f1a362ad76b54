# Prints what a command in a sandbox is and has, one "name: value" per line.
import os, re, resource, stat

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



def stream(fd):
    """What a standard stream is; its name would differ from run to run."""
    found = os.fstat(fd)
    if os.isatty(fd):
        return "terminal"
    if stat.S_ISCHR(found.st_mode):
        return "null" if found.st_rdev == os.makedev(1, 3) else "device"
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFREG: "file"}
    return kinds.get(stat.S_IFMT(found.st_mode), "something else")


print(f"standard streams: {' '.join(stream(fd) for fd in range(3))}")
# In its own namespace the machine's group is the root; a path that leads above it is another's.
groups = {line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup")}
print(f"cgroup: {'OUTSIDE' if any(path.startswith('/..') for path in groups) else 'of the machine'}")

runner = open("/proc/1/status").read() if os.access("/proc/1/status", os.R_OK) else "hidden"
print(f"runner as seen by a command: {'hidden' if runner == 'hidden' else 'visible'}")


def unescape(text):
    return text.encode().decode("unicode_escape")


def cover(target, options):
    """How a kernel file is kept from reading or writing."""
    found = os.stat(target)
    if stat.S_ISCHR(found.st_mode):
        return "covered" if found.st_rdev == os.makedev(1, 3) else "a device"
    if stat.S_ISDIR(found.st_mode) and not os.listdir(target) and "ro" in options:
        return "empty"
    return "read-only" if "ro" in options else "WRITABLE"


# What the image `host` takes from the host, and what it has of its own in /etc.
IMAGE = ("/usr", "/etc/", "/lib", "/bin", "/sbin")
mounts, conditional, cgroups = {}, {}, set()
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    target, options = unescape(fields[4]), fields[5].split(",")
    kind = fields[fields.index("-") + 1]
    flags = [o for o in options if o in ("ro", "rw", "nosuid", "nodev", "noexec", "idmapped")]
    # Of several at one place, the last one covers the others.
    if target.startswith("/sys/fs/cgroup"):
        # Which hierarchies there are is the host's affair; that nothing can be written is not.
        fixed = "ro" in options or not kind.startswith("cgroup") and not os.access(target, os.W_OK)
        cgroups.add("read-only" if fixed else "WRITABLE")
    elif target.startswith(("/proc/", "/sys/")):
        conditional[target] = f"mask {target}: {cover(target, options)}"
    elif target.startswith(IMAGE):
        # Directories with a version in their name are the same for every version.
        name = re.sub(r"(/etc/(python3|java|ld-musl)[.-]).*", r"\1*", target)
        conditional[name] = f"bind {name}: {' '.join(flags)}"
    else:
        kind = kind if kind in ("proc", "sysfs", "tmpfs", "devpts", "mqueue") else "disk"
        mounts.pop(target, None)
        mounts[target] = f"mount {target}: {kind} {' '.join(flags)}"
print(f"cgroups: {' '.join(sorted(cgroups)) or 'none'}")
mounts, conditional = list(mounts.values()), set(conditional.values())
print("\n".join(sorted(mounts) + sorted(conditional)))


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
# To be compared with the host's.
for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]:
    print(f"namespace {os.readlink(f'/proc/self/ns/{name}')}")
