"""A command's output: records, the place in them, and the result in the end.

The server numbers what a command prints. `OutputSource` asks for everything after the last
number that was handed out, so no byte is lost and none comes twice, wherever a connection
breaks: in the middle of a record, too. What the server itself no longer keeps (it holds the last
megabytes of each command) comes as an event of the type `dropped`, with the exact count.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from .decode import decode
from .effects import Reply, Request, get
from .errors import BadRequest, CommandFailed, ConnectionFailed, NotFound, SandbankError
from .models import Ending

__all__ = ["OutputEvent", "Result"]

Kind: TypeAlias = Literal["output", "dropped", "ending"]
Stream: TypeAlias = Literal["stdout", "stderr", "pty"]

_OUTPUT: dict[str, Stream] = {"stdout": "stdout", "stderr": "stderr", "pty": "pty"}


@dataclass(frozen=True)
class OutputEvent:
    """Something a command printed, or what became of it.

    `type` is `output` with `stream` and `data`; `dropped` with `dropped_bytes`, where output is
    no longer kept; and last `ending`, with `ending` and `exit_code`.
    """

    type: Kind
    #: Give it to `stream(after=…)` to go on behind this event.
    seq: int
    #: Of output: where it was printed; `pty` for a command on a terminal.
    stream: Stream | None = None
    #: Exactly what was printed.
    data: bytes = b""
    time_ms: int | None = None
    dropped_bytes: int = 0
    dropped_frames: int = 0
    ending: Ending | None = None
    exit_code: int | None = None

    @property
    def text(self) -> str:
        """The data as text. The server does not tear characters apart; odd bytes become �."""
        return self.data.decode("utf-8", "replace")


class OutputSource:
    """The output of one command behind record `after`."""

    def __init__(self, path: str, after: int = 0) -> None:
        #: Number of the last record that was handed out.
        self.after = after
        self.done = False
        self.received = 0
        self._path = path
        self._buffer = bytearray()
        self._was_open = False
        self._lost: str | None = None

    def request(self) -> Request:
        self._buffer.clear()
        return get(f"{self._path}/logs", encoding="base64", after=str(self.after))

    def opened(self, reply: Reply) -> None:
        self._was_open = True

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk

    def ended(self) -> None:
        raise ConnectionFailed("the output broke off before the command's ending")

    def take(self) -> OutputEvent | None:
        if self._lost is not None:
            self.done = True
            ending = Ending("lost", reason=self._lost)
            self._lost = None
            return OutputEvent("ending", self.after, ending=ending)
        while not self.done:
            end = self._buffer.find(b"\n")
            if end < 0:
                return None
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            record = _record(line)
            self.received += 1
            event = self._event(record)
            if event is not None:
                return event
        return None

    def _event(self, record: dict[str, Any]) -> OutputEvent | None:
        """None for what is not for the caller: heartbeats, records of a newer server."""
        name, kind = record.get("stream"), record.get("type")
        seq = _count(record.get("seq"), "number")
        time_ms = record.get("timeMs")
        if isinstance(name, str) and name in _OUTPUT:
            if seq <= self.after:
                return None
            if seq != self.after + 1:
                raise _bad(f"record {self.after + 1} is missing before {seq}")
            self.after = seq
            return OutputEvent("output", seq, _OUTPUT[name], _data(record), time_ms)
        if name == "control" and kind == "dropped" and seq > self.after:
            self.after = seq
            dropped = _count(record.get("bytes"), "count of bytes")
            frames = _count(record.get("frames"), "count of frames")
            return OutputEvent("dropped", seq, dropped_bytes=dropped, dropped_frames=frames)
        if name == "control" and kind == "ending":
            self.done = True
            ending = _ending(record.get("ending"))
            return OutputEvent("ending", seq, ending=ending, exit_code=ending.exit_code)
        return None

    def explains(self, error: SandbankError) -> bool:
        """A sandbox that ended while we were cut off: who stayed connected is told `lost`."""
        if not self._was_open:
            return False
        if isinstance(error, NotFound) or (
            isinstance(error, BadRequest) and error.code == "invalid"
        ):
            self._lost = error.hint or error.message
            return True
        return False


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _bad(f"a record is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise _bad("a record is not an object")
    return record


def _count(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _bad(f"a record has no {what}")
    return value


def _ending(told: object) -> Ending:
    try:
        return decode(Ending, told)
    except SandbankError as error:
        raise _bad(f"a record has no ending: {error.message}") from error


def _data(record: dict[str, Any]) -> bytes:
    text = record.get("data")
    if not isinstance(text, str):
        raise _bad("a record has no data")
    if record.get("encoding") != "base64":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise _bad(f"a record's data is not base64: {error}") from error


def _bad(message: str) -> SandbankError:
    return SandbankError(message, code="bad_output")


@dataclass(frozen=True)
class Result:
    """A command that has ended.

    `exit_code` is what a shell shows: 124 after a timeout, 128 + n for signal n; none when the
    command is lost. `dropped_bytes` of the output are missing from `stdout` and `stderr`,
    because the server no longer had them.
    """

    command_id: str
    exit_code: int | None
    ending: Ending
    #: Everything that was printed, piece by piece.
    events: tuple[OutputEvent, ...] = field(repr=False)
    dropped_bytes: int = 0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @cached_property
    def stdout_bytes(self) -> bytes:
        return self._bytes("stdout", "pty")

    @cached_property
    def stderr_bytes(self) -> bytes:
        return self._bytes("stderr")

    @cached_property
    def output_bytes(self) -> bytes:
        """Both streams, in the order in which they arrived."""
        return self._bytes("stdout", "stderr", "pty")

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def output(self) -> str:
        return self.output_bytes.decode("utf-8", "replace")

    def _bytes(self, *streams: str) -> bytes:
        return b"".join(event.data for event in self.events if event.stream in streams)

    def check(self) -> None:
        """Raises `CommandFailed` unless the command exited with 0."""
        if not self.ok:
            raise CommandFailed(self)


def result_of(command_id: str, events: Iterable[OutputEvent]) -> Result:
    """The result that a whole stream of events amounts to."""
    seen = tuple(events)
    last = seen[-1] if seen else None
    if last is None or last.ending is None:
        raise _bad("the output has no ending")
    dropped = sum(event.dropped_bytes for event in seen)
    return Result(command_id, last.exit_code, last.ending, seen, dropped)
