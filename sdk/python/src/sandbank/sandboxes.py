"""Making sandboxes, finding them, and everything one can do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from .commands import AsyncCommands, Commands
from .driver import AsyncDriver, SyncDriver
from .effects import Request, get, segment
from .files import AsyncFiles, Files
from .models import Containment, Created, PostMortem, SandboxInfo, SandboxList, Stats
from .ports import AsyncPorts, Ports
from .shell import AsyncShell, Shell
from .terminal import AsyncTerminals, Terminals

__all__ = ["AsyncSandbox", "AsyncSandboxes", "Sandbox", "Sandboxes"]

_ROOT = "/v1/sandboxes"


def _create_request(
    *,
    key: str | None,
    image: str | None,
    runtime: str | None,
    env: Mapping[str, str] | None,
    network: str | None,
    vcpus: int | None,
    memory_mb: int | None,
    disk_mb: int | None,
    pids: int | None,
    tmp_mb: int | None,
    ports: Sequence[int] | None,
    idle_ttl: float | None,
    max_lifetime: float | None,
) -> Request:
    """Repeatable, because it always has a key: the second one finds what the first has made."""
    resources = {"vcpus": vcpus, "memoryMb": memory_mb, "diskMb": disk_mb, "pids": pids,
                 "tmpMb": tmp_mb}  # fmt: skip
    body: dict[str, Any] = {
        "sessionKey": key or f"py:{uuid.uuid4().hex}",
        "image": image,
        "runtime": runtime,
        "env": dict(env) if env else None,
        "network": {"mode": network} if network else None,
        "resources": _given(resources) or None,
        "ports": list(ports) if ports else None,
        "idleTtlMs": None if idle_ttl is None else round(idle_ttl * 1000),
        "maxLifetimeMs": None if max_lifetime is None else round(max_lifetime * 1000),
    }
    return Request("POST", _ROOT, json=_given(body), repeatable=True)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    # Left out, not null: the server takes some nulls for the smallest number there is.
    return {name: value for name, value in fields.items() if value is not None}


class _SandboxRequests:
    def __init__(self, sandbox_id: str, created: bool, keep: bool) -> None:
        self.id = sandbox_id
        #: False when a sandbox with this key was there already.
        self.created = created
        #: Whether it lives on at the end of its `with`.
        self.keep = keep
        self._path = f"{_ROOT}/{segment(sandbox_id)}"
        self._info: SandboxInfo | None = None

    def _verb(self, verb: str) -> Request:
        return Request("POST", f"{self._path}:{verb}")

    def _containment(self) -> Request:
        # It is an attack, and takes its time; not one to repeat by itself.
        return Request("GET", f"{self._path}/containment", read_timeout=120.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class Sandbox(_SandboxRequests):
    """A sandbox. In a `with` it is stopped at the end, unless it was made with `keep=True`."""

    def __init__(self, io: SyncDriver, sandbox_id: str, *, created: bool, keep: bool) -> None:
        super().__init__(sandbox_id, created, keep)
        self._io = io
        #: Run programs.
        self.commands = Commands(io, self._path)
        #: Read and write the workspace.
        self.files = Files(io, self._path, self.commands)
        #: Reach what listens inside.
        self.ports = Ports(io, self._path)
        #: Open a terminal, or attach to one.
        self.terminal = Terminals(self.commands)

    def shell(self, name: str = "main") -> Shell:
        """The shell of that name, which remembers what its scripts did."""
        return Shell(self.commands, name)

    def url(self, port: int) -> str:
        """The URL of what listens on that port; publishes it if need be."""
        return self.ports.publish(port)

    def info(self) -> SandboxInfo:
        """What is known about it, from the last time the server was asked."""
        return self._info or self.refresh()

    def refresh(self) -> SandboxInfo:
        """Asks the server how it stands now."""
        self._info = self._io.ask(get(self._path), SandboxInfo)
        return self._info

    def stop(self) -> None:
        """Stops and deletes it with its workspace; fine if it has ended."""
        self._io.call(self._verb("stop"))

    def pause(self) -> None:
        """Stops every process where it stands; nothing is lost."""
        self._io.call(self._verb("pause"))

    def resume(self) -> None:
        """Lets a paused one go on."""
        self._io.call(self._verb("resume"))

    def stats(self) -> Stats:
        """What it uses right now."""
        return self._io.ask(get(f"{self._path}/stats"), Stats)

    def post_mortem(self) -> PostMortem:
        """After its end: why it ended, and what it did last."""
        return self._io.ask(get(f"{self._path}/post-mortem"), PostMortem)

    def containment(self) -> Containment:
        """Attacks it from inside and says what held."""
        return self._io.ask(self._containment(), Containment)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.keep:
            self.stop()


class Sandboxes:
    """The sandboxes of a server."""

    def __init__(self, io: SyncDriver) -> None:
        self._io = io

    def create(
        self,
        key: str | None = None,
        *,
        image: str | None = None,
        runtime: str | None = None,
        env: Mapping[str, str] | None = None,
        network: Literal["default", "none"] | None = None,
        vcpus: int | None = None,
        memory_mb: int | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
        tmp_mb: int | None = None,
        ports: Sequence[int] | None = None,
        idle_ttl: float | None = None,
        max_lifetime: float | None = None,
        keep: bool = False,
    ) -> Sandbox:
        """Makes a sandbox, or finds the living one with this `key` (`sandbox.created` tells).

        `env` is the base environment of every command, `ports` are those that can be published
        (at most 4). It is deleted after `idle_ttl` seconds without use, and after `max_lifetime`
        seconds whatever it does. What is left out, the server decides. In a `with` it is stopped
        at the end, unless you `keep` it.
        """
        request = _create_request(
            key=key, image=image, runtime=runtime, env=env, network=network, vcpus=vcpus,
            memory_mb=memory_mb, disk_mb=disk_mb, pids=pids, tmp_mb=tmp_mb, ports=ports,
            idle_ttl=idle_ttl, max_lifetime=max_lifetime,
        )  # fmt: skip
        made = self._io.ask(request, Created)
        return Sandbox(self._io, made.sandbox_id, created=made.created, keep=keep)

    def get(self, sandbox_id: str) -> Sandbox:
        """The sandbox of that id; raises `NotFound`. It outlives its `with`."""
        sandbox = Sandbox(self._io, sandbox_id, created=False, keep=True)
        sandbox.refresh()
        return sandbox

    def list(self) -> list[Sandbox]:
        """Every living sandbox; `info()` of each is already here."""
        found = []
        for info in self._io.ask(get(_ROOT), SandboxList).sandboxes:
            sandbox = Sandbox(self._io, info.id, created=False, keep=True)
            sandbox._info = info
            found.append(sandbox)
        return found


class AsyncSandbox(_SandboxRequests):
    """Like `Sandbox`, awaited: `async with await client.sandboxes.create() as sandbox:`."""

    def __init__(self, io: AsyncDriver, sandbox_id: str, *, created: bool, keep: bool) -> None:
        super().__init__(sandbox_id, created, keep)
        self._io = io
        #: Run programs.
        self.commands = AsyncCommands(io, self._path)
        #: Read and write the workspace.
        self.files = AsyncFiles(io, self._path, self.commands)
        #: Reach what listens inside.
        self.ports = AsyncPorts(io, self._path)
        #: Open a terminal, or attach to one.
        self.terminal = AsyncTerminals(self.commands)

    def shell(self, name: str = "main") -> AsyncShell:
        """The shell of that name, which remembers what its scripts did."""
        return AsyncShell(self.commands, name)

    async def url(self, port: int) -> str:
        """The URL of what listens on that port; publishes it if need be."""
        return await self.ports.publish(port)

    async def info(self) -> SandboxInfo:
        """What is known about it, from the last time the server was asked."""
        return self._info or await self.refresh()

    async def refresh(self) -> SandboxInfo:
        """Asks the server how it stands now."""
        self._info = await self._io.ask(get(self._path), SandboxInfo)
        return self._info

    async def stop(self) -> None:
        """Stops and deletes it with its workspace; fine if it has ended."""
        await self._io.call(self._verb("stop"))

    async def pause(self) -> None:
        """Stops every process where it stands; nothing is lost."""
        await self._io.call(self._verb("pause"))

    async def resume(self) -> None:
        """Lets a paused one go on."""
        await self._io.call(self._verb("resume"))

    async def stats(self) -> Stats:
        """What it uses right now."""
        return await self._io.ask(get(f"{self._path}/stats"), Stats)

    async def post_mortem(self) -> PostMortem:
        """After its end: why it ended, and what it did last."""
        return await self._io.ask(get(f"{self._path}/post-mortem"), PostMortem)

    async def containment(self) -> Containment:
        """Attacks it from inside and says what held."""
        return await self._io.ask(self._containment(), Containment)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.keep:
            await self.stop()


class AsyncSandboxes:
    """Like `Sandboxes`, awaited."""

    def __init__(self, io: AsyncDriver) -> None:
        self._io = io

    async def create(
        self,
        key: str | None = None,
        *,
        image: str | None = None,
        runtime: str | None = None,
        env: Mapping[str, str] | None = None,
        network: Literal["default", "none"] | None = None,
        vcpus: int | None = None,
        memory_mb: int | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
        tmp_mb: int | None = None,
        ports: Sequence[int] | None = None,
        idle_ttl: float | None = None,
        max_lifetime: float | None = None,
        keep: bool = False,
    ) -> AsyncSandbox:
        """Makes a sandbox, or finds the living one with this `key`; see `Sandboxes.create`."""
        request = _create_request(
            key=key, image=image, runtime=runtime, env=env, network=network, vcpus=vcpus,
            memory_mb=memory_mb, disk_mb=disk_mb, pids=pids, tmp_mb=tmp_mb, ports=ports,
            idle_ttl=idle_ttl, max_lifetime=max_lifetime,
        )  # fmt: skip
        made = await self._io.ask(request, Created)
        return AsyncSandbox(self._io, made.sandbox_id, created=made.created, keep=keep)

    async def get(self, sandbox_id: str) -> AsyncSandbox:
        """The sandbox of that id; raises `NotFound`. It outlives its `with`."""
        sandbox = AsyncSandbox(self._io, sandbox_id, created=False, keep=True)
        await sandbox.refresh()
        return sandbox

    async def list(self) -> list[AsyncSandbox]:
        """Every living sandbox; `info()` of each is already here."""
        found = []
        for info in (await self._io.ask(get(_ROOT), SandboxList)).sandboxes:
            sandbox = AsyncSandbox(self._io, info.id, created=False, keep=True)
            sandbox._info = info
            found.append(sandbox)
        return found
