"""Running programs in a sandbox.

`run` starts one and waits, `start` leaves it running; both name the command themselves, so that
a start whose answer was lost is repeated without running twice.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, Union

from .driver import AsyncDriver, SyncDriver
from .effects import Request, get, segment
from .errors import BadRequest, SandbankError
from .fed import async_fed_stream, fed_stream
from .models import CommandList, CommandStatus, Started
from .notices import tell
from .output import OutputEvent, OutputSource, Result, result_of
from .resume import resume
from .stdin import AsyncStdin, Input, Stdin

__all__ = ["AsyncCommand", "AsyncCommands", "Command", "Commands"]

Cmd: TypeAlias = Union[str, Sequence[str]]

#: Ending what nobody waits for any more must not keep its caller waiting for long.
KILL_SECONDS = 5.0


def new_id() -> str:
    return f"py{uuid.uuid4().hex}"


def argv_of(cmd: Cmd) -> list[str]:
    """A text is a script for a login bash; a list is a program and its arguments, as they are."""
    return ["bash", "-lc", cmd] if isinstance(cmd, str) else list(cmd)


def start_body(
    what: Mapping[str, object],
    *,
    id: str | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    stdin: bool = False,
    pty: tuple[int, int] | None = None,
) -> dict[str, Any]:
    body: dict[str, Any] = {**what, "commandId": id or new_id()}
    if cwd is not None:
        body["cwd"] = cwd
    if env:
        body["env"] = dict(env)
    if timeout is not None:
        if timeout <= 0:
            message = "a timeout is a positive number, or left out for no limit"
            raise BadRequest(message, code="bad_timeout")
        body["timeoutMs"] = max(1, round(timeout * 1000))
    if stdin:
        body["stdin"] = "open"
    if pty is not None:
        body["pty"] = {"rows": pty[0], "cols": pty[1]}
    return body


def start_request(sandbox: str, body: Mapping[str, Any]) -> Request:
    """Repeatable, because the command's id makes the second one attach to the first."""
    return Request("POST", f"{sandbox}/commands", json=body, repeatable=True)


def deadline_of(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


class _CommandRequests:
    def __init__(self, sandbox: str, command_id: str) -> None:
        self.id = command_id
        #: What of the start had no effect, each with what to do; also a `SandbankWarning`.
        self.warnings: list[str] = []
        self._path = f"{sandbox}/commands/{segment(command_id)}"

    def _kill(self, limit: float | None = None) -> Request:
        return Request("POST", f"{self._path}:kill", limit=limit)

    def _signal(self, signal: str | int, tree: bool) -> Request:
        return Request("POST", f"{self._path}/signal", json={"signal": signal, "tree": tree})

    def _resize(self, rows: int, cols: int) -> Request:
        return Request("POST", f"{self._path}/resize", json={"rows": rows, "cols": cols})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class Command(_CommandRequests):
    """A command in a sandbox, running or ended. Iterate it for its output from the beginning."""

    def __init__(self, io: SyncDriver, sandbox: str, command_id: str) -> None:
        super().__init__(sandbox, command_id)
        self._io = io
        self._input = Input(self._path, None)
        self._writing = threading.Lock()

    def status(self) -> CommandStatus:
        """How it stands right now."""
        return self._io.ask(get(self._path), CommandStatus)

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for the ending and returns it with all output that the server has kept.

        Raises `Timeout` after `timeout` seconds, however often the connection broke; the command
        then goes on running.
        """
        source = OutputSource(self._path)
        feed = resume(self._io.policy, source, deadline_of(timeout))
        return result_of(self.id, self._io.iterate(feed))

    def stream(self, after: int = 0) -> Generator[OutputEvent, None, None]:
        """Output as it comes, behind record `after`, and the ending last.

        A broken connection is made again, and the stream goes on where it was: nothing is lost
        and nothing comes twice. When the sandbox ends meanwhile, the ending is `lost`.
        """
        return self._io.iterate(resume(self._io.policy, OutputSource(self._path, after)))

    def __iter__(self) -> Generator[OutputEvent, None, None]:
        return self.stream()

    def write(self, data: bytes | str) -> None:
        """Writes to its stdin (`start(…, stdin=True)`), and returns when that was taken."""
        self._write(data.encode() if isinstance(data, str) else data, eof=False)

    def close_stdin(self) -> None:
        """Tells the command that its input ends."""
        self._write(b"", eof=True)

    def _write(self, data: bytes, *, eof: bool) -> None:
        with self._writing:
            self._io.run(self._input.write(self._io.patience, data, eof=eof))

    def kill(self) -> None:
        """Asks it to end, with TERM; fine if it has ended. `signal("KILL")` does not ask."""
        self._io.call(self._kill())

    def signal(self, signal: str | int, *, tree: bool = False) -> None:
        """Sends `"INT"`, `"KILL"`, 10 …; with `tree` also to what it left in the background."""
        self._io.call(self._signal(signal, tree))

    def resize(self, rows: int, cols: int) -> None:
        """Changes the size of its terminal."""
        self._io.call(self._resize(rows, cols))


class Commands:
    """The commands of one sandbox."""

    def __init__(self, io: SyncDriver, sandbox: str) -> None:
        self._io, self._sandbox = io, sandbox

    def run(
        self,
        cmd: Cmd,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: Stdin | None = None,
        check: bool = False,
    ) -> Result:
        """Runs a command and returns its `Result`.

        `cmd` is a script for a login bash, or a list with a program and its arguments. After
        `timeout` seconds the sandbox ends it, and `result.ending.kind` is `timed_out`. With
        `check` anything but exit code 0 raises `CommandFailed`. Who interrupts this with Ctrl-C
        does not leave the command behind: it is sent TERM.
        """
        result = self._run_as({"argv": argv_of(cmd)}, stdin, cwd=cwd, env=env, timeout=timeout)
        if check:
            result.check()
        return result

    def start(
        self,
        cmd: Cmd,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
        id: str | None = None,
    ) -> Command:
        """Starts a command and returns at once. It runs on when this program ends.

        With `stdin=True` it can be written to. `id` is your own name for it: starting the same
        under the same name again finds the one that is there.
        """
        return self._start_as({"argv": argv_of(cmd)}, id=id, cwd=cwd, env=env, timeout=timeout,
                             stdin=stdin)  # fmt: skip

    def _run_as(self, what: Mapping[str, object], stdin: Stdin | None, **options: Any) -> Result:
        """Starts, feeds and waits; who gives up meanwhile leaves nothing behind."""
        id = new_id()
        try:
            command = self._start_as(what, id=id, stdin=stdin is not None, **options)
            return result_of(id, fed_stream(command, stdin))
        except SandbankError:
            raise
        except BaseException:
            given_up = Command(self._io, self._sandbox, id)
            with suppress(SandbankError):
                self._io.call(given_up._kill(KILL_SECONDS))
            raise

    def _start_as(self, what: Mapping[str, object], **options: Any) -> Command:
        """For `Shell` and `Terminal`: starts what the API's body describes."""
        body = start_body(what, **options)
        started = self._io.ask(start_request(self._sandbox, body), Started)
        command = Command(self._io, self._sandbox, started.command_id)
        if not started.attached:
            command._input = Input(command._path, 0)
        command.warnings = tell(started.warnings)
        return command

    def _status(self, id: str) -> CommandStatus:
        return Command(self._io, self._sandbox, id).status()

    def get(self, id: str) -> Command:
        """The command of that id; raises `NotFound` when the sandbox does not know it."""
        command = Command(self._io, self._sandbox, id)
        command.status()
        return command

    def list(self) -> list[CommandStatus]:
        """Every command that the sandbox still knows, oldest first."""
        found = self._io.ask(get(f"{self._sandbox}/commands"), CommandList)
        return [*found.commands]


class AsyncCommand(_CommandRequests):
    """Like `Command`, awaited."""

    def __init__(self, io: AsyncDriver, sandbox: str, command_id: str) -> None:
        super().__init__(sandbox, command_id)
        self._io = io
        self._input = Input(self._path, None)
        self._writing = asyncio.Lock()

    async def status(self) -> CommandStatus:
        """How it stands right now."""
        return await self._io.ask(get(self._path), CommandStatus)

    async def wait(self, timeout: float | None = None) -> Result:
        """Waits for the ending and returns it with all output that the server has kept.

        Raises `Timeout` after `timeout` seconds, however often the connection broke; the command
        then goes on running.
        """
        feed = resume(self._io.policy, OutputSource(self._path), deadline_of(timeout))
        return result_of(self.id, [event async for event in self._io.iterate(feed)])

    def stream(self, after: int = 0) -> AsyncGenerator[OutputEvent, None]:
        """Output as it comes, behind record `after`, and the ending last.

        A broken connection is made again, and the stream goes on where it was: nothing is lost
        and nothing comes twice. When the sandbox ends meanwhile, the ending is `lost`.
        """
        return self._io.iterate(resume(self._io.policy, OutputSource(self._path, after)))

    def __aiter__(self) -> AsyncGenerator[OutputEvent, None]:
        return self.stream()

    async def write(self, data: bytes | str) -> None:
        """Writes to its stdin (`start(…, stdin=True)`), and returns when that was taken."""
        await self._write(data.encode() if isinstance(data, str) else data, eof=False)

    async def close_stdin(self) -> None:
        """Tells the command that its input ends."""
        await self._write(b"", eof=True)

    async def _write(self, data: bytes, *, eof: bool) -> None:
        async with self._writing:
            await self._io.run(self._input.write(self._io.patience, data, eof=eof))

    async def kill(self) -> None:
        """Asks it to end, with TERM; fine if it has ended. `signal("KILL")` does not ask."""
        await self._io.call(self._kill())

    async def signal(self, signal: str | int, *, tree: bool = False) -> None:
        """Sends `"INT"`, `"KILL"`, 10 …; with `tree` also to what it left in the background."""
        await self._io.call(self._signal(signal, tree))

    async def resize(self, rows: int, cols: int) -> None:
        """Changes the size of its terminal."""
        await self._io.call(self._resize(rows, cols))


class AsyncCommands:
    """Like `Commands`, awaited."""

    def __init__(self, io: AsyncDriver, sandbox: str) -> None:
        self._io, self._sandbox = io, sandbox

    async def run(
        self,
        cmd: Cmd,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: AsyncStdin | None = None,
        check: bool = False,
    ) -> Result:
        """Runs a command and returns its `Result`; see `Commands.run`.

        When it is cancelled, the command is sent TERM.
        """
        what = {"argv": argv_of(cmd)}
        result = await self._run_as(what, stdin, cwd=cwd, env=env, timeout=timeout)
        if check:
            result.check()
        return result

    async def start(
        self,
        cmd: Cmd,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
        id: str | None = None,
    ) -> AsyncCommand:
        """Starts a command and returns at once; see `Commands.start`."""
        return await self._start_as({"argv": argv_of(cmd)}, id=id, cwd=cwd, env=env,
                                   timeout=timeout, stdin=stdin)  # fmt: skip

    async def _run_as(
        self, what: Mapping[str, object], stdin: AsyncStdin | None, **options: Any
    ) -> Result:
        """Starts, feeds and waits; who gives up meanwhile leaves nothing behind."""
        id = new_id()
        try:
            command = await self._start_as(what, id=id, stdin=stdin is not None, **options)
            return result_of(id, [event async for event in async_fed_stream(command, stdin)])
        except (SandbankError, GeneratorExit):
            raise
        except BaseException:
            given_up = AsyncCommand(self._io, self._sandbox, id)
            with suppress(SandbankError):
                await self._io.call(given_up._kill(KILL_SECONDS))
            raise

    async def _start_as(self, what: Mapping[str, object], **options: Any) -> AsyncCommand:
        """For `AsyncShell` and `AsyncTerminal`: starts what the API's body describes."""
        body = start_body(what, **options)
        started = await self._io.ask(start_request(self._sandbox, body), Started)
        command = AsyncCommand(self._io, self._sandbox, started.command_id)
        if not started.attached:
            command._input = Input(command._path, 0)
        command.warnings = tell(started.warnings)
        return command

    async def _status(self, id: str) -> CommandStatus:
        return await AsyncCommand(self._io, self._sandbox, id).status()

    async def get(self, id: str) -> AsyncCommand:
        """The command of that id; raises `NotFound` when the sandbox does not know it."""
        command = AsyncCommand(self._io, self._sandbox, id)
        await command.status()
        return command

    async def list(self) -> list[CommandStatus]:
        """Every command that the sandbox still knows, oldest first."""
        found = await self._io.ask(get(f"{self._sandbox}/commands"), CommandList)
        return [*found.commands]
