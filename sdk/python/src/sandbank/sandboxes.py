"""Making sandboxes, finding them, and everything one can do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from .commands import AsyncCommands, Commands
from .driver import AsyncDriver, SyncDriver
from .effects import CREATE_SECONDS, Request, get, segment
from .files import AsyncFiles, Files
from .git import AsyncGit, Git
from .models import Containment, Created, PostMortem, SandboxInfo, SandboxList, Stats
from .notices import tell
from .ports import AsyncPorts, Ports
from .shell import AsyncShell, Shell
from .terminal import AsyncTerminals, Terminals

__all__ = ["AsyncSandbox", "AsyncSandboxes", "Sandbox", "Sandboxes"]

_ROOT = "/v1/sandboxes"

#: An attack takes its time.
CONTAINMENT_SECONDS = 120.0


def _create_request(
    *,
    key: str | None,
    engine: str | None,
    image: str | None,
    runtime: str | None,
    workspace: str | None,
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
        "engine": engine,
        "image": image,
        "runtime": runtime,
        "workspace": workspace,
        "env": dict(env) if env else None,
        "network": {"mode": network} if network else None,
        "resources": _given(resources) or None,
        "ports": list(ports) if ports else None,
        "idleTtlMs": None if idle_ttl is None else round(idle_ttl * 1000),
        "maxLifetimeMs": None if max_lifetime is None else round(max_lifetime * 1000),
    }
    return Request("POST", _ROOT, json=_given(body), repeatable=True, least=CREATE_SECONDS)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    # Left out, not null: the server takes some nulls for the smallest number there is.
    return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class _Origin:
    """How one came by a sandbox; what was found is nobody's to stop at the end of a `with`."""

    created: bool = False
    acquire_source: str | None = None
    keep: bool = True
    warnings: tuple[str, ...] = ()


_FOUND = _Origin()


def _made(made: Created, keep: bool) -> _Origin:
    tell(made.warnings)
    return _Origin(made.created, made.acquire_source, keep, made.warnings)


class _SandboxRequests:
    def __init__(self, id: str, origin: _Origin, info: SandboxInfo | None) -> None:
        self.id = id
        #: False when a sandbox with this key was there already, and for one that was found.
        self.created = origin.created
        #: Of a new one: `pool` when its machine was ready, `cold` when it was made now.
        self.acquire_source = origin.acquire_source
        #: Whether it lives on at the end of its `with`.
        self.keep = origin.keep
        #: What of the create had no effect, each with what to do; also a `SandbankWarning`.
        self.warnings: list[str] = [*origin.warnings]
        self._path = f"{_ROOT}/{segment(id)}"
        self._info = info

    def _verb(self, verb: str) -> Request:
        return Request("POST", f"{self._path}:{verb}")

    def _containment(self) -> Request:
        # It is an attack, and takes its time; not one to repeat by itself.
        return Request("GET", f"{self._path}/containment", limit=CONTAINMENT_SECONDS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class Sandbox(_SandboxRequests):
    """A sandbox. In a `with` it is stopped at the end, unless it was made with `keep=True`."""

    def __init__(
        self, io: SyncDriver, id: str, origin: _Origin = _FOUND, info: SandboxInfo | None = None
    ) -> None:
        super().__init__(id, origin, info)
        self._io = io
        #: Run programs.
        self.commands = Commands(io, self._path)
        #: Read and write the workspace.
        self.files = Files(io, self._path, self.commands)
        #: The repository in the workspace.
        self.git = Git(io, self._path)
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
        """Attacks it from inside and says what held. Never repeated by itself."""
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
        *,
        key: str | None = None,
        engine: str | None = None,
        image: str | None = None,
        runtime: str | None = None,
        workspace: str | None = None,
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

        `engine` is one of the server's, where it has several. `runtime` is `node24` or
        `python3.13`; `workspace` names a kept one: made when it is not there, shared, and still
        there when the sandbox has ended. `env` is the base environment of every command, `ports`
        are those that can be published (at most 4). The sandbox is deleted after `idle_ttl` seconds
        without use, and after `max_lifetime` seconds whatever it does. What is left out, the server
        decides. In a `with` it is stopped at the end, unless you `keep` it.
        """
        request = _create_request(
            key=key, engine=engine, image=image, runtime=runtime, workspace=workspace, env=env,
            network=network, vcpus=vcpus, memory_mb=memory_mb, disk_mb=disk_mb, pids=pids,
            tmp_mb=tmp_mb, ports=ports, idle_ttl=idle_ttl, max_lifetime=max_lifetime,
        )  # fmt: skip
        made = self._io.ask(request, Created)
        return Sandbox(self._io, made.sandbox_id, _made(made, keep))

    def get(self, id: str) -> Sandbox:
        """The sandbox of that id; raises `NotFound`. It outlives its `with`."""
        sandbox = Sandbox(self._io, id)
        sandbox.refresh()
        return sandbox

    def list(self) -> list[Sandbox]:
        """Every living sandbox; `info()` of each is already here."""
        found = self._io.ask(get(_ROOT), SandboxList).sandboxes
        return [Sandbox(self._io, info.id, info=info) for info in found]


class AsyncSandbox(_SandboxRequests):
    """Like `Sandbox`, awaited: `async with await client.sandboxes.create() as sandbox:`."""

    def __init__(
        self, io: AsyncDriver, id: str, origin: _Origin = _FOUND, info: SandboxInfo | None = None
    ) -> None:
        super().__init__(id, origin, info)
        self._io = io
        #: Run programs.
        self.commands = AsyncCommands(io, self._path)
        #: Read and write the workspace.
        self.files = AsyncFiles(io, self._path, self.commands)
        #: The repository in the workspace.
        self.git = AsyncGit(io, self._path)
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
        """Attacks it from inside and says what held. Never repeated by itself."""
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
        *,
        key: str | None = None,
        engine: str | None = None,
        image: str | None = None,
        runtime: str | None = None,
        workspace: str | None = None,
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
            key=key, engine=engine, image=image, runtime=runtime, workspace=workspace, env=env,
            network=network, vcpus=vcpus, memory_mb=memory_mb, disk_mb=disk_mb, pids=pids,
            tmp_mb=tmp_mb, ports=ports, idle_ttl=idle_ttl, max_lifetime=max_lifetime,
        )  # fmt: skip
        made = await self._io.ask(request, Created)
        return AsyncSandbox(self._io, made.sandbox_id, _made(made, keep))

    async def get(self, id: str) -> AsyncSandbox:
        """The sandbox of that id; raises `NotFound`. It outlives its `with`."""
        sandbox = AsyncSandbox(self._io, id)
        await sandbox.refresh()
        return sandbox

    async def list(self) -> list[AsyncSandbox]:
        """Every living sandbox; `info()` of each is already here."""
        found = (await self._io.ask(get(_ROOT), SandboxList)).sandboxes
        return [AsyncSandbox(self._io, info.id, info=info) for info in found]
