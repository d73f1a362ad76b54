"""What the server tells, as frozen dataclasses. Times ending in `_ms` are Unix milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Capabilities",
    "CommandStatus",
    "Containment",
    "ContainmentProbe",
    "Control",
    "Doctor",
    "Ending",
    "Event",
    "FileEntry",
    "FileStat",
    "Health",
    "Image",
    "Limits",
    "Listing",
    "PortList",
    "PostMortem",
    "Published",
    "RunnerStats",
    "SandboxInfo",
    "ShellStatus",
    "Stats",
]


@dataclass(frozen=True)
class Health:
    """Whether the daemon serves and can keep what it is told."""

    ok: bool
    engine: str
    version: str
    #: All of them; empty when the server is older than the choice.
    engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Control:
    """One protection: `standing` is `in_force`, `weaker` or `missing`."""

    name: str
    standing: str
    detail: str
    fix: str | None = None


@dataclass(frozen=True)
class Capabilities:
    """What the engine can enforce on its machine."""

    network_egress: bool
    disk_quota: bool
    memory_limit: bool
    cpu_limit: bool
    pids_limit: bool
    pause: bool
    concurrent_creates: int


@dataclass(frozen=True)
class Doctor:
    """What protects you on the server's machine; `healthy` when every control is in force."""

    healthy: bool
    engine: str
    engine_version: str
    version: str
    controls: tuple[Control, ...]
    capabilities: Capabilities
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """A root file system that sandboxes can be made of."""

    name: str
    size_bytes: int
    layers: int
    digest: str | None = None
    imported_at_ms: int | None = None


@dataclass(frozen=True)
class Limits:
    """What a sandbox may use. No `disk_bytes`: no quota."""

    cpu_millis: int
    memory_bytes: int
    pids: int
    tmp_bytes: int
    disk_bytes: int | None = None


@dataclass(frozen=True)
class Published:
    """A port of a sandbox and where it can be reached."""

    port: int
    host_port: int
    address: str
    url: str


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as it stands: `creating`, `running`, `paused`, `stopping`, `gone` or `failed`."""

    id: str
    key: str
    state: str
    engine: str
    image: str
    runtime: str
    network: str
    limits: Limits
    ports: tuple[int, ...]
    published: tuple[Published, ...]
    created_at_ms: int
    last_active_at_ms: int
    idle_ttl_ms: int
    busy: bool
    commands_running: int
    expires_at_ms: int | None = None
    ends_at_ms: int | None = None
    reason: str | None = None
    workspace: str | None = None


@dataclass(frozen=True)
class RunnerStats:
    """What the sandbox's runner says about the inside."""

    commands_running: int
    commands_ended: int
    processes: int
    tunnels_open: int
    readers_open: int
    journal_bytes: int
    uptime_s: int
    disk_used_bytes: int
    disk_total_bytes: int


@dataclass(frozen=True)
class Stats:
    """What a sandbox uses right now; no `runner` while it is paused."""

    memory_bytes: int
    memory_peak_bytes: int
    cpu_usage_us: int
    pids: int
    disk_bytes: int
    oom_kills: int
    runner: RunnerStats | None = None


@dataclass(frozen=True)
class Ending:
    """How a command ended: `exited` (with `code`), `signaled` or `killed` (with `signal`),
    `timed_out`, `oom_killed`, or `lost` (with `reason`) when nobody can say."""

    kind: str
    code: int | None = None
    signal: int | None = None
    by: str | None = None
    reason: str | None = None

    @property
    def exit_code(self) -> int | None:
        """As a shell shows it: 124 after a timeout, 128 + n for signal n; none when lost."""
        if self.kind in ("signaled", "killed"):
            return 128 + (self.signal or 0)
        return {"exited": self.code, "timed_out": 124, "oom_killed": 137}.get(self.kind)

    def describe(self) -> str:
        """The ending as the rest of a sentence about the command."""
        return {
            "exited": f"exited with {self.code}",
            "signaled": f"died of signal {self.signal}",
            "killed": f"was killed by {self.by} with signal {self.signal}",
            "timed_out": "ran out of time",
            "oom_killed": "ran out of memory",
            "lost": f"is lost: {self.reason}",
        }.get(self.kind, self.kind)


@dataclass(frozen=True)
class ShellStatus:
    """The shell that a script ran in, and where it was when the script ended."""

    name: str
    kind: str
    restarted: bool
    cwd: str | None = None


@dataclass(frozen=True)
class CommandStatus:
    """How a command stands: `running` or `ended`."""

    command_id: str
    argv: tuple[str, ...]
    pty: bool
    state: str
    pid: int
    started_at_ms: int
    stdout_bytes: int
    stderr_bytes: int
    dropped_bytes: int
    last_seq: int
    stdin_offset: int
    cwd: str | None = None
    ending: Ending | None = None
    exit_code: int | None = None
    ended_at_ms: int | None = None
    shell: ShellStatus | None = None


@dataclass(frozen=True)
class PostMortem:
    """What is left of a sandbox after its end: why it ended, and what it did last."""

    id: str
    key: str
    cause: dict[str, Any]
    reason: str
    created_at_ms: int
    ended_at_ms: int
    memory_peak_bytes: int
    cpu_usage_us: int
    oom_kills: int
    last_commands: tuple[CommandStatus, ...]
    last_output: str


@dataclass(frozen=True)
class ContainmentProbe:
    """One attack from inside; `standing` is `held`, `failed`, `not_claimed` or `not_tried`."""

    name: str
    control: str
    attack: str
    refusal: str
    counterpart: str
    standing: str
    evidence: str


@dataclass(frozen=True)
class Containment:
    """Whether a sandbox held when it was attacked from inside."""

    sandbox_id: str
    contained: bool
    duration_ms: int
    probes: tuple[ContainmentProbe, ...]


@dataclass(frozen=True)
class FileStat:
    """What a path names: a `file`, `directory`, `symlink` or `other`. `mode` has permissions."""

    kind: str
    size: int
    mode: int
    modified_ms: int


@dataclass(frozen=True)
class FileEntry(FileStat):
    """An entry of a directory. `name_hex` has the exact bytes of a name that is not UTF-8."""

    name: str
    name_hex: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Listing:
    """A directory, sorted by name; iterate it. `truncated` when there is more than is told."""

    entries: tuple[FileEntry, ...]
    truncated: bool = False

    def __iter__(self) -> Iterator[FileEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True)
class PortList:
    """The ports that may be published, and those that are."""

    allowed: tuple[int, ...]
    published: tuple[Published, ...]


@dataclass(frozen=True)
class Event:
    """Something that happened, such as `sandbox.created`; `seq` numbers them all."""

    seq: int
    time_ms: int
    kind: str
    detail: dict[str, Any]
    sandbox_id: str | None = None


@dataclass(frozen=True)
class Created:
    """The answer to a create."""

    sandbox_id: str
    created: bool
    acquire_source: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Started:
    """The answer to a start."""

    command_id: str
    attached: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class StdinReply:
    """How far a command's input was accepted."""

    next_offset: int
    closed: bool


@dataclass(frozen=True)
class PortReply:
    """Where a port is reachable; not found when the sandbox was not created with it."""

    found: bool
    host_port: int | None = None
    url: str | None = None


@dataclass(frozen=True)
class ImageList:
    """The answer to a list of images."""

    images: tuple[Image, ...]


@dataclass(frozen=True)
class SandboxList:
    """The answer to a list of sandboxes."""

    sandboxes: tuple[SandboxInfo, ...]


@dataclass(frozen=True)
class CommandList:
    """The answer to a list of commands."""

    commands: tuple[CommandStatus, ...]
