"""Server-sent events, taken apart as they arrive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerEvent:
    event: str
    data: str
    id: str | None


class EventParser:
    """Lines end with LF or CRLF; a stream of ours never has a lone CR."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk

    def take(self) -> ServerEvent | None:
        """The next whole event; comments and events without data are skipped."""
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end]).rstrip(b"\r").decode("utf-8", "replace")
            del self._buffer[: end + 1]
            if line:
                self._field(line)
                continue
            event, data, number = self._event or "message", self._data, self._id
            self._event, self._data, self._id = "", [], None
            if data:
                return ServerEvent(event, "\n".join(data), number)
        return None

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
