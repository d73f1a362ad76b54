"""What the protocol logic asks of the outside world.

The logic is written once, as generators that yield these and are sent the answers. They do no
IO, so the same code serves the synchronous and the asynchronous client; `driver.py` performs
what is asked.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar, Union
from urllib.parse import quote

from .decode import decode_json
from .errors import SandbankError, Timeout, error_of, redirected
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
    #: Seconds for the whole call with all its tries; the client's own when none. `math.inf` for
    #: uploads, which take what they take.
    limit: float | None = None
    #: At least so many, where the client's own are fewer.
    least: float = 0.0
    #: Longest silence of a stream that is opened.
    silence: float | None = None


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
        if 300 <= self.status < 400:
            return redirected(self.status, self.headers.get("location"))
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


#: For a create: longer than a server lets it wait for its turn and then be made.
CREATE_SECONDS = 200.0


def get(path: str, /, **params: str) -> Request:
    """A request that only looks, and so may be repeated."""
    return Request("GET", path, params, repeatable=True)


def segment(text: str) -> str:
    """One segment of a path, whatever characters it has."""
    return quote(text, safe="")


@dataclass(frozen=True)
class Patience:
    """How often something is tried, and for how long in all."""

    policy: RetryPolicy
    #: Seconds for one call, where the request does not say.
    timeout: float


def call(patience: Patience, request: Request) -> Op[Reply]:
    """Sends a request, again where that is safe and may help; one deadline for all tries."""
    own = max(patience.timeout, request.least)
    limit = own if request.limit is None else request.limit
    deadline = time.monotonic() + limit
    failures = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Timeout("the server did not answer in time", code="timeout")
        try:
            reply: Reply = yield Send(replace(request, limit=left))
            if reply.ok:
                return reply
            raise reply.error()
        except SandbankError as error:
            failures += 1
            pause = patience.policy.pause(failures, error) if request.repeatable else None
            if pause is None or time.monotonic() + pause >= deadline:
                raise
        yield Sleep(pause)


def ask(patience: Patience, request: Request, model: type[T]) -> Op[T]:
    """Sends a request and reads the JSON of its answer."""
    reply = yield from call(patience, request)
    return decode_json(model, reply.body)
