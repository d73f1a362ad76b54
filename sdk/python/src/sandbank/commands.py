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
from .errors import Gone
from .models import CommandList, CommandStatus, Started
from .output import OutputEvent, OutputSource, Result, result_of
from .resume import resume
from .stdin import AsyncStdin, Input, Stdin, async_pieces, pieces

__all__ = ["AsyncCommand", "AsyncCommands", "Command", "Commands"]

Cmd: TypeAlias = Union[str, Sequence[str]]


def argv_of(cmd: Cmd) -> list[str]:
    """A text is a script for a login bash; a list is a program and its arguments, as they are."""
    return ["bash", "-lc", cmd] if isinstance(cmd, str) else list(cmd)


def start_body(
    what: Mapping[str, object],
    *,
    command_id: str | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout: float | None,
    stdin: bool,
    pty: tuple[int, int] | None = None,
) -> dict[str, Any]:
    body: dict[str, Any] = {**what, "commandId": command_id or f"py{uuid.uuid4().hex}"}
    if cwd is not None:
        body["cwd"] = cwd
    if env:
        body["env"] = dict(env)
    if timeout is not None:
        if timeout <= 0:
            raise ValueError("a timeout is a positive number of seconds, or None for no limit")
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
        self._path = f"{sandbox}/commands/{segment(command_id)}"

    def _kill(self) -> Request:
        return Request("POST", f"{self._path}:kill")

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

        Raises `Timeout` after `timeout` seconds; the command then goes on running.
        """
        source = OutputSource(self._path)
        feed = resume(self._io.policy, source, deadline_of(timeout))
        return result_of(self.id, self._io.iterate(feed))

    def stream(self, after: int = 0) -> Generator[OutputEvent, None, None]:
        """Output as it comes, behind record `after`, and the ending last.

        A broken connection is made again, and the stream goes on where it was: nothing is lost
        and nothing comes twice.
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
            self._io.run(self._input.write(self._io.policy, data, eof=eof))

    def kill(self) -> None:
        """Asks it to end, with TERM; fine if it has ended. `signal("KILL")` does not ask."""
        self._io.call(self._kill())

    def signal(self, signal: str | int, *, tree: bool = False) -> None:
        """Sends `"INT"`, `"KILL"`, 10 …; with `tree` also to what it left in the background."""
        self._io.call(self._signal(signal, tree))

    def resize(self, rows: int, cols: int) -> None:
        """Changes the size of its terminal."""
        self._io.call(self._resize(rows, cols))


class _Feeder:
    """Feeds a command from a thread of its own, while its output is read."""

    def __init__(self, command: Command, stdin: Stdin) -> None:
        self.error: BaseException | None = None
        self._command, self._stdin = command, stdin
        # A daemon: an input that never ends must not outlive the program that gave it.
        threading.Thread(target=self._feed, name="sandbank-stdin", daemon=True).start()

    def _feed(self) -> None:
        try:
            for piece in pieces(self._stdin):
                self._command.write(piece)
            self._command.close_stdin()
        except Gone:
            pass  # The command wants no more, like `head`.
        except BaseException as error:
            self.error = error
            with suppress(Exception):
                self._command.signal("KILL", tree=True)


def finish(command: Command, stdin: Stdin | None) -> Result:
    """Waits for a command, feeding it meanwhile."""
    feeder = _Feeder(command, stdin) if stdin is not None else None
    result = command.wait()
    if feeder is not None and feeder.error is not None:
        raise feeder.error
    return result


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
        `check` anything but exit code 0 raises `CommandFailed`.
        """
        command = self.start(cmd, cwd=cwd, env=env, timeout=timeout, stdin=stdin is not None)
        result = finish(command, stdin)
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
        command_id: str | None = None,
    ) -> Command:
        """Starts a command and returns at once. It runs on when this program ends.

        With `stdin=True` it can be written to. `command_id` is your own name for it: starting
        the same under the same name again finds the one that is there.
        """
        return self._start_as({"argv": argv_of(cmd)}, command_id=command_id, cwd=cwd, env=env,
                             timeout=timeout, stdin=stdin)  # fmt: skip

    def _start_as(self, what: Mapping[str, object], **options: Any) -> Command:
        """For `Shell` and `Terminal`: starts what the API's body describes."""
        body = start_body(what, **options)
        started = self._io.ask(start_request(self._sandbox, body), Started)
        command = Command(self._io, self._sandbox, started.command_id)
        if not started.attached:
            command._input = Input(command._path, 0)
        return command

    def get(self, command_id: str) -> Command:
        """The command of that id; raises `NotFound` when the sandbox does not know it."""
        command = Command(self._io, self._sandbox, command_id)
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

        Raises `Timeout` after `timeout` seconds; the command then goes on running.
        """
        feed = resume(self._io.policy, OutputSource(self._path), deadline_of(timeout))
        return result_of(self.id, [event async for event in self._io.iterate(feed)])

    def stream(self, after: int = 0) -> AsyncGenerator[OutputEvent, None]:
        """Output as it comes, behind record `after`, and the ending last.

        A broken connection is made again, and the stream goes on where it was: nothing is lost
        and nothing comes twice.
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
            await self._io.run(self._input.write(self._io.policy, data, eof=eof))

    async def kill(self) -> None:
        """Asks it to end, with TERM; fine if it has ended. `signal("KILL")` does not ask."""
        await self._io.call(self._kill())

    async def signal(self, signal: str | int, *, tree: bool = False) -> None:
        """Sends `"INT"`, `"KILL"`, 10 …; with `tree` also to what it left in the background."""
        await self._io.call(self._signal(signal, tree))

    async def resize(self, rows: int, cols: int) -> None:
        """Changes the size of its terminal."""
        await self._io.call(self._resize(rows, cols))


class _AsyncFeeder:
    """Feeds a command in a task of its own, while its output is read."""

    def __init__(self, command: AsyncCommand, stdin: AsyncStdin) -> None:
        #: Set before the command is ended for it, so it is there when the ending is.
        self.error: Exception | None = None
        self._command, self._stdin = command, stdin
        self._task = asyncio.create_task(self._feed())

    async def _feed(self) -> None:
        try:
            async for piece in async_pieces(self._stdin):
                await self._command.write(piece)
            await self._command.close_stdin()
        except Gone:
            pass  # The command wants no more, like `head`.
        except Exception as error:
            self.error = error
            with suppress(Exception):
                await self._command.signal("KILL", tree=True)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


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
        """Runs a command and returns its `Result`; see `Commands.run`."""
        command = await self.start(cmd, cwd=cwd, env=env, timeout=timeout, stdin=stdin is not None)
        result = await finish_async(command, stdin)
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
        command_id: str | None = None,
    ) -> AsyncCommand:
        """Starts a command and returns at once; see `Commands.start`."""
        return await self._start_as({"argv": argv_of(cmd)}, command_id=command_id, cwd=cwd, env=env,
                                   timeout=timeout, stdin=stdin)  # fmt: skip

    async def _start_as(self, what: Mapping[str, object], **options: Any) -> AsyncCommand:
        """For `AsyncShell` and `AsyncTerminal`: starts what the API's body describes."""
        body = start_body(what, **options)
        started = await self._io.ask(start_request(self._sandbox, body), Started)
        command = AsyncCommand(self._io, self._sandbox, started.command_id)
        if not started.attached:
            command._input = Input(command._path, 0)
        return command

    async def get(self, command_id: str) -> AsyncCommand:
        """The command of that id; raises `NotFound` when the sandbox does not know it."""
        command = AsyncCommand(self._io, self._sandbox, command_id)
        await command.status()
        return command

    async def list(self) -> list[CommandStatus]:
        """Every command that the sandbox still knows, oldest first."""
        found = await self._io.ask(get(f"{self._sandbox}/commands"), CommandList)
        return [*found.commands]


async def finish_async(command: AsyncCommand, stdin: AsyncStdin | None) -> Result:
    """Waits for a command, feeding it meanwhile."""
    if stdin is None:
        return await command.wait()
    feeder = _AsyncFeeder(command, stdin)
    try:
        result = await command.wait()
    finally:
        await feeder.stop()
    if feeder.error is not None:
        raise feeder.error
    return result
