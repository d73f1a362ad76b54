"""What happens on the server, as an endless feed that reconnects by itself."""

from __future__ import annotations

from .decode import decode_json
from .effects import Reply, Request, get
from .errors import ConnectionFailed, SandbankError
from .models import Event
from .sse import EventParser


class EventSource:
    """The events behind number `after`; all that are stored first, when there is none."""

    done = False

    def __init__(self, after: int | None) -> None:
        self.received = 0
        self._after = after or 0
        self._parser = EventParser()

    def request(self) -> Request:
        self._parser = EventParser()
        return get("/v1/events", after=str(self._after))

    def opened(self, reply: Reply) -> None:
        pass

    def feed(self, chunk: bytes) -> None:
        # A comment is a sign of life, too.
        self.received += 1
        self._parser.feed(chunk)

    def ended(self) -> None:
        raise ConnectionFailed("the server closed the event stream")

    def take(self) -> Event | None:
        while (told := self._parser.take()) is not None:
            event = decode_json(Event, told.data.encode())
            if event.seq > self._after:
                self._after = event.seq
                return event
        return None

    def explains(self, error: SandbankError) -> bool:
        return False
