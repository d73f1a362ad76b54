"""A shell that remembers: directory, variables, functions and jobs of one script are there for
the next, also from another program that uses the shell's name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass

from .commands import AsyncCommand, AsyncCommands, Command, Commands
from .errors import SandbankError
from .fed import async_fed_stream, fed_stream
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
        what = _what(self.name, script, merged)
        result = self._commands._run_as(what, stdin, timeout=timeout)
        found = _shell_result(result, _status(self._commands, result))
        if check:
            found.check()
        return found

    def stream(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: Stdin | None = None,
        merged: bool = False,
    ) -> Generator[OutputEvent, None, None]:
        """Runs a script and hands out its output as it comes, the ending last.

        Leaving the loop leaves the script running.
        """
        command = self.start(script, timeout=timeout, stdin=stdin is not None, merged=merged)
        yield from fed_stream(command, stdin)

    def start(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: bool = False,
        merged: bool = False,
    ) -> Command:
        """Starts a script as a `Command`, which can be watched, written to and killed."""
        what = _what(self.name, script, merged)
        return self._commands._start_as(what, timeout=timeout, stdin=stdin)


def _status(commands: Commands, result: Result) -> CommandStatus | None:
    """Where the shell is; not to be had when the sandbox has ended with the script."""
    try:
        lost = result.ending.kind == "lost"
        return None if lost else commands._status(result.command_id)
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
        what = _what(self.name, script, merged)
        result = await self._commands._run_as(what, stdin, timeout=timeout)
        found = _shell_result(result, await _async_status(self._commands, result))
        if check:
            found.check()
        return found

    async def stream(
        self,
        script: str,
        *,
        timeout: float | None = None,
        stdin: AsyncStdin | None = None,
        merged: bool = False,
    ) -> AsyncGenerator[OutputEvent, None]:
        """Runs a script and hands out its output as it comes, the ending last.

        Leaving the loop leaves the script running.
        """
        given = stdin is not None
        command = await self.start(script, timeout=timeout, stdin=given, merged=merged)
        async for event in async_fed_stream(command, stdin):
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
        what = _what(self.name, script, merged)
        return await self._commands._start_as(what, timeout=timeout, stdin=stdin)


async def _async_status(commands: AsyncCommands, result: Result) -> CommandStatus | None:
    try:
        lost = result.ending.kind == "lost"
        return None if lost else await commands._status(result.command_id)
    except SandbankError:
        return None
