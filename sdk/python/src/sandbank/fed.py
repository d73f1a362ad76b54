"""Feeding a command while its output is read: a program may read and write at the same time.

Should the input fail, the command is killed: it must not go on with half of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from typing import TYPE_CHECKING

from .errors import Gone
from .output import OutputEvent
from .stdin import AsyncStdin, Stdin, async_pieces, pieces

if TYPE_CHECKING:
    from .commands import AsyncCommand, Command


class _Feeder:
    """Feeds a command from a thread of its own."""

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


def fed_stream(command: Command, stdin: Stdin | None) -> Generator[OutputEvent, None, None]:
    """A command's output, feeding it meanwhile."""
    feeder = _Feeder(command, stdin) if stdin is not None else None
    yield from command.stream()
    if feeder is not None and feeder.error is not None:
        raise feeder.error


class _AsyncFeeder:
    """Feeds a command in a task of its own."""

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


async def async_fed_stream(
    command: AsyncCommand, stdin: AsyncStdin | None
) -> AsyncGenerator[OutputEvent, None]:
    """A command's output, feeding it meanwhile."""
    feeder = _AsyncFeeder(command, stdin) if stdin is not None else None
    try:
        async for event in command.stream():
            yield event
    finally:
        if feeder is not None:
            await feeder.stop()
    if feeder is not None and feeder.error is not None:
        raise feeder.error
