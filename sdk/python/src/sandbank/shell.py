"""A shell that remembers: directory, variables, functions and jobs of one script are there for
the next, also from another program that uses the shell's name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass

from .commands import AsyncCommand, AsyncCommands, Command, Commands, finish, finish_async
from .errors import SandbankError
from .models import CommandStatus
from .output import OutputEvent, Result
from .stdin import AsyncStdin, Stdin

__all__ = ["AsyncShell", "Shell", "ShellResult"]


@dataclass(frozen=True)
class ShellResult(Result):
    """A script that has ended, and the shell it ran in.

    `cwd` is where the shell is now. `restarted` when the shell before it had died: directory and
    exported variables are as they were, all else is gone.
    """

    cwd: str | None = None
    restarted: bool = False


def _what(name: str, script: str, merged: bool) -> dict[str, object]:
    return {"shell": name, "script": script, "merged": merged}


def _options(timeout: float | None, stdin: bool) -> dict[str, object]:
    return {"command_id": None, "cwd": None, "env": None, "timeout": timeout, "stdin": stdin}


def _shell_result(result: Result, status: CommandStatus | None) -> ShellResult:
    shell = status.shell if status else None
    return ShellResult(
        result.command_id,
        result.exit_code,
        result.ending,
        result.events,
        result.dropped_bytes,
        cwd=shell.cwd if shell else None,
        restarted=shell.restarted if shell else False,
    )


class Shell:
    """A named shell of a sandbox; it is made when it is first used."""

    def __init__(self, commands: Commands, name: str) -> None:
        self.name = name
        self._commands = commands

    def run(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: Stdin | None = None,
        merged: bool = False,
        check: bool = False,
    ) -> ShellResult:
        """Runs a script. With `merged`, errors come in `stdout`, in the order of writing."""
        command = self.start(script, timeout=timeout, stdin=stdin is not None, merged=merged)
        result = finish(command, stdin)
        found = _shell_result(result, _status(command, result))
        if check:
            found.check()
        return found

    def stream(
        self, script: str, *, timeout: float | None = None, merged: bool = False
    ) -> Generator[OutputEvent, None, None]:
        """Runs a script and hands out its output as it comes, the ending last."""
        yield from self.start(script, timeout=timeout, merged=merged).stream()

    def start(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: bool = False,
        merged: bool = False,
    ) -> Command:
        """Starts a script as a `Command`, which can be watched, written to and killed."""
        return self._commands._start_as(
            _what(self.name, script, merged), **_options(timeout, stdin)
        )


def _status(command: Command, result: Result) -> CommandStatus | None:
    """Where the shell is; not to be had when the sandbox has ended with the script."""
    try:
        return command.status() if result.ending.kind != "lost" else None
    except SandbankError:
        return None


class AsyncShell:
    """Like `Shell`, awaited."""

    def __init__(self, commands: AsyncCommands, name: str) -> None:
        self.name = name
        self._commands = commands

    async def run(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: AsyncStdin | None = None,
        merged: bool = False,
        check: bool = False,
    ) -> ShellResult:
        """Runs a script. With `merged`, errors come in `stdout`, in the order of writing."""
        command = await self.start(script, timeout=timeout, stdin=stdin is not None, merged=merged)
        result = await finish_async(command, stdin)
        found = _shell_result(result, await _async_status(command, result))
        if check:
            found.check()
        return found

    async def stream(
        self, script: str, *, timeout: float | None = None, merged: bool = False
    ) -> AsyncGenerator[OutputEvent, None]:
        """Runs a script and hands out its output as it comes, the ending last."""
        command = await self.start(script, timeout=timeout, merged=merged)
        async for event in command.stream():
            yield event

    async def start(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: bool = False,
        merged: bool = False,
    ) -> AsyncCommand:
        """Starts a script as an `AsyncCommand`."""
        return await self._commands._start_as(
            _what(self.name, script, merged), **_options(timeout, stdin)
        )


async def _async_status(command: AsyncCommand, result: Result) -> CommandStatus | None:
    try:
        return await command.status() if result.ending.kind != "lost" else None
    except SandbankError:
        return None
