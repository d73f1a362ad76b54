"""Feeding a command exactly once.

Every piece says where in the whole input it begins, and the server skips what it has already
accepted. So a piece whose answer was lost is simply sent again.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TypeAlias, Union

from .effects import Op, Patience, Request, ask, get
from .errors import Conflict, Gone, Timeout
from .models import CommandStatus, StdinReply

Stdin: TypeAlias = Union[bytes, str, Iterable[bytes]]
AsyncStdin: TypeAlias = Union[Stdin, AsyncIterable[bytes]]

#: Large enough to be fast, small enough to be sent again without regret.
PIECE_BYTES = 256 * 1024


class Input:
    """How far one command's input has come, as this client knows."""

    def __init__(self, path: str, offset: int | None) -> None:
        self._path = path
        #: None until the server was asked.
        self._offset = offset

    def write(self, patience: Patience, data: bytes, *, eof: bool = False) -> Op[None]:
        for piece, last in _pieces(data):
            yield from self._piece(patience, piece, eof and last)

    def _accepted(self, patience: Patience) -> Op[int]:
        status = yield from ask(patience, get(self._path), CommandStatus)
        return status.stdin_offset

    def _piece(self, patience: Patience, piece: bytes, eof: bool) -> Op[None]:
        offset = self._offset
        if offset is None:
            offset = yield from self._accepted(patience)
        end = offset + len(piece)
        # Unknown again, should this fail.
        self._offset = None
        try:
            reached = yield from self._send(patience, piece, offset, eof)
        except Gone as error:
            # It may have ended because of what it was sent, before the answer got through.
            if error.code != "closed" or (yield from self._accepted(patience)) != end:
                raise
            reached = end
        self._offset = reached
        if reached != end:
            message = "somebody else writes to this command, too: some input was not taken"
            raise Conflict(message, code="stdin_shared", hint="let only one client write")

    def _send(self, patience: Patience, piece: bytes, offset: int, eof: bool) -> Op[int]:
        params = {"offset": str(offset)}
        if eof:
            params["eof"] = "true"
        request = Request("POST", f"{self._path}/stdin", params, content=piece, repeatable=True)
        while True:
            try:
                reply = yield from ask(patience, request, StdinReply)
                return reply.next_offset
            except Timeout as error:
                if error.status is not None:
                    raise
                # The command does not read; a pipe would wait, too. The offset makes it safe.


def _pieces(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """At least one, for an end without data; each with whether it is the last."""
    starts = range(0, max(len(data), 1), PIECE_BYTES)
    for start in starts:
        yield data[start : start + PIECE_BYTES], start == starts[-1]


def pieces(stdin: Stdin) -> Iterator[bytes]:
    if isinstance(stdin, str):
        stdin = stdin.encode()
    if isinstance(stdin, (bytes, bytearray, memoryview)):
        yield bytes(stdin)
        return
    read = getattr(stdin, "read", None)
    if callable(read):
        while piece := read(PIECE_BYTES):
            yield piece
        return
    yield from stdin


async def async_pieces(stdin: AsyncStdin) -> AsyncIterator[bytes]:
    if isinstance(stdin, AsyncIterable):
        async for piece in stdin:
            yield piece
        return
    for piece in pieces(stdin):
        yield piece
