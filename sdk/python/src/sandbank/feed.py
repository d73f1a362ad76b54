"""What every feed of server-sent events does alike."""

from __future__ import annotations

from .effects import Reply, Request
from .errors import ConnectionFailed, SandbankError
from .sse import EventParser


class Feed:
    """Each connection begins with an empty parser; whoever inherits says what to ask for."""

    #: For the message when the server ends it.
    name: str

    def __init__(self) -> None:
        self.done = False
        self.received = 0
        self.parser = EventParser()

    def ask(self) -> Request:
        raise NotImplementedError

    def request(self) -> Request:
        self.parser = EventParser()
        return self.ask()

    def opened(self, reply: Reply) -> None:
        pass

    def feed(self, chunk: bytes) -> None:
        # A comment is a sign of life, too.
        self.received += 1
        self.parser.feed(chunk)

    def ended(self) -> None:
        raise ConnectionFailed(f"the server closed the {self.name}")

    def explains(self, error: SandbankError) -> bool:
        return False
