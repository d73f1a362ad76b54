"""What the protocol logic asks of the outside world.

The logic is written once, as generators that yield these and are sent the answers. They do no
IO, so the same code serves the synchronous and the asynchronous client; `driver.py` performs
what is asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, Union
from urllib.parse import quote

from .decode import decode_json
from .errors import SandbankError, error_of
from .retry import RetryPolicy

T = TypeVar("T")

Content: TypeAlias = Union[bytes, Iterable[bytes], AsyncIterable[bytes]]


@dataclass(frozen=True)
class Request:
    """One request, before it is known how it travels."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    json: object = None
    content: Content | None = None
    files: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Sending it twice does no more than sending it once.
    repeatable: bool = False
    #: Longest silence of the server; the client's own when none. Infinite is `math.inf`.
    read_timeout: float | None = None


@dataclass(frozen=True)
class Reply:
    """The head of an answer, and its body where it was read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def error(self) -> SandbankError:
        return error_of(self.status, self.headers, self.body)


@dataclass(frozen=True)
class Send:
    """Answered with the whole `Reply`."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Answered with the `Reply` without its body, which `Read` takes; an error has its body."""

    request: Request


@dataclass(frozen=True)
class Read:
    """Answered with the next bytes of what was opened, or None at its proper end."""


@dataclass(frozen=True)
class Sleep:
    """Answered with None after that time."""

    seconds: float


@dataclass(frozen=True)
class Emit(Generic[T]):
    """Hands an item to whoever iterates."""

    item: T


Effect: TypeAlias = Union[Send, Open, Read, Sleep]
Op: TypeAlias = Generator[Effect, Any, T]
Feed: TypeAlias = Generator[Union[Effect, Emit[T]], Any, None]


def get(path: str, /, **params: str) -> Request:
    """A request that only looks, and so may be repeated."""
    return Request("GET", path, params, repeatable=True)


def segment(text: str) -> str:
    """One segment of a path, whatever characters it has."""
    return quote(text, safe="")


def call(policy: RetryPolicy, request: Request) -> Op[Reply]:
    """Sends a request, again where that is safe and may help."""
    failures = 0
    while True:
        try:
            reply: Reply = yield Send(request)
            if reply.ok:
                return reply
            raise reply.error()
        except SandbankError as error:
            failures += 1
            pause = policy.pause(failures, error) if request.repeatable else None
            if pause is None:
                raise
        yield Sleep(pause)


def ask(policy: RetryPolicy, request: Request, model: type[T]) -> Op[T]:
    """Sends a request and reads the JSON of its answer."""
    reply = yield from call(policy, request)
    return decode_json(model, reply.body)
