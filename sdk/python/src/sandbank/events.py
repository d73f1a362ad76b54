"""What happens on the server, as an endless feed that reconnects by itself."""

from __future__ import annotations

from .decode import decode_json
from .effects import Request, get
from .feed import Feed
from .models import Event


class EventSource(Feed):
    """The events behind number `after`; all that are stored first, when there is none."""

    name = "event stream"

    def __init__(self, after: int | None) -> None:
        super().__init__()
        self._after = after or 0

    def ask(self) -> Request:
        return get("/v1/events", after=str(self._after))

    def take(self) -> Event | None:
        while (told := self.parser.take()) is not None:
            event = decode_json(Event, told.data.encode())
            if event.seq > self._after:
                self._after = event.seq
                return event
        return None
