"""A program on a terminal of its own, for what wants one: editors, pagers, prompts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

from .commands import AsyncCommand, AsyncCommands, Cmd, Command, Commands, argv_of
from .output import OutputEvent, OutputSource, Result
from .resume import resume

__all__ = ["AsyncTerminal", "AsyncTerminals", "Terminal", "Terminals"]


def _options(
    cwd: str | None, env: Mapping[str, str] | None, rows: int, cols: int
) -> dict[str, Any]:
    return {"cwd": cwd, "env": env, "pty": (rows, cols)}


class _Screen:
    """What was shown so far, so that an iteration goes on where the last one was left."""

    def __init__(self, path: str, after: int) -> None:
        self.source = OutputSource(path, after)
        self.detached = False

    def shows(self, event: OutputEvent) -> bool:
        return bool(event.data)


class Terminal:
    """A terminal. Iterate it for what it shows; it lives on when you detach or disconnect."""

    def __init__(self, command: Command, after: int = 0) -> None:
        self.command = command
        self.id = command.id
        self._screen = _Screen(command._path, after)

    @property
    def seq(self) -> int:
        """How far it was read; for `sandbox.terminal.attach(id, after=seq)`."""
        return self._screen.source.after

    def write(self, data: bytes | str) -> None:
        """Types. Enter is `"\\r"`, control-C `"\\x03"`. Let only one client type."""
        self.command.write(data)

    def resize(self, rows: int, cols: int) -> None:
        """Tells the program that its window has another size."""
        self.command.resize(rows, cols)

    def __iter__(self) -> Generator[bytes, None, None]:
        """What the terminal shows, until the program ends or `detach` is called."""
        screen, io = self._screen, self.command._io
        screen.detached = False
        for event in io.iterate(resume(io.policy, screen.source)):
            if screen.shows(event):
                yield event.data
            if screen.detached:
                return

    def detach(self) -> None:
        """Ends the iteration with the next output at the latest; the program runs on, and a
        later iteration begins where this one was."""
        self._screen.detached = True

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for the program's ending."""
        return self.command.wait(timeout)

    def kill(self) -> None:
        """Ends the program and everything it started, as a closed window does and then some."""
        self.command.signal("KILL", tree=True)


class Terminals:
    """`sandbox.terminal(…)` opens one, `sandbox.terminal.attach(id)` finds one again."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def __call__(
        self,
        cmd: Cmd = ("bash", "-l"),
        *,
        rows: int = 24,
        cols: int = 80,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Terminal:
        """Starts a program on a new terminal."""
        what = {"argv": argv_of(cmd)}
        return Terminal(self._commands._start_as(what, **_options(cwd, env, rows, cols)))

    def attach(self, id: str, after: int = 0) -> Terminal:
        """A terminal that is there; iterating it begins behind `after`, the `seq` at which it was
        left, else with all that is kept."""
        return Terminal(self._commands.get(id), after)


class AsyncTerminal:
    """Like `Terminal`, awaited."""

    def __init__(self, command: AsyncCommand, after: int = 0) -> None:
        self.command = command
        self.id = command.id
        self._screen = _Screen(command._path, after)

    @property
    def seq(self) -> int:
        """How far it was read; for `sandbox.terminal.attach(id, after=seq)`."""
        return self._screen.source.after

    async def write(self, data: bytes | str) -> None:
        """Types. Enter is `"\\r"`, control-C `"\\x03"`. Let only one client type."""
        await self.command.write(data)

    async def resize(self, rows: int, cols: int) -> None:
        """Tells the program that its window has another size."""
        await self.command.resize(rows, cols)

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """What the terminal shows, until the program ends or `detach` is called."""
        screen, io = self._screen, self.command._io
        screen.detached = False
        async for event in io.iterate(resume(io.policy, screen.source)):
            if screen.shows(event):
                yield event.data
            if screen.detached:
                return

    def detach(self) -> None:
        """Ends the iteration with the next output at the latest; the program runs on, and a
        later iteration begins where this one was."""
        self._screen.detached = True

    async def wait(self, timeout: float | None = None) -> Result:
        """Waits for the program's ending."""
        return await self.command.wait(timeout)

    async def kill(self) -> None:
        """Ends the program and everything it started, as a closed window does and then some."""
        await self.command.signal("KILL", tree=True)


class AsyncTerminals:
    """Like `Terminals`, awaited."""

    def __init__(self, commands: AsyncCommands) -> None:
        self._commands = commands

    async def __call__(
        self,
        cmd: Cmd = ("bash", "-l"),
        *,
        rows: int = 24,
        cols: int = 80,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> AsyncTerminal:
        """Starts a program on a new terminal."""
        what = {"argv": argv_of(cmd)}
        return AsyncTerminal(await self._commands._start_as(what, **_options(cwd, env, rows, cols)))

    async def attach(self, id: str, after: int = 0) -> AsyncTerminal:
        """A terminal that is there; iterating it begins behind `after`, the `seq` at which it was
        left, else with all that is kept."""
        return AsyncTerminal(await self._commands.get(id), after)
