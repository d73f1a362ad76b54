"""A stream that outlives its connections.

A `Source` knows how far it has come and how to ask for the rest. Whatever breaks the connection,
the next one begins exactly there: a source only moves on by items that were handed out, and what
was received in part is thrown away and asked for again.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol, TypeVar

from .effects import Emit, Feed, Open, Read, Reply, Request, Sleep
from .errors import ConnectionFailed, SandbankError, Timeout
from .retry import RetryPolicy

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

#: A live stream says something at least every 15 s; one that is silent for this long is dead,
#: even if nobody closed it.
SILENCE_SECONDS = 45.0

#: A wait with a deadline asks again when its connection would sit silent for this much longer
#: than there is time.
OVERTIME_SECONDS = 1.0


class Source(Protocol[T_co]):
    @property
    def done(self) -> bool:
        """Whether everything was handed out."""

    @property
    def received(self) -> int:
        """Grows with everything that arrives whole; failures are counted from its last growth."""

    def request(self) -> Request:
        """Asks for what comes next. What was received in part is forgotten."""

    def opened(self, reply: Reply) -> None:
        """Looks at an answer's head; raises when it does not continue what was handed out."""

    def feed(self, chunk: bytes) -> None: ...

    def ended(self) -> None:
        """The body came to its proper end: done, or raises `ConnectionFailed` if too early."""

    def take(self) -> T_co | None:
        """Hands out the next item, if there is a whole one."""

    def explains(self, error: SandbankError) -> bool:
        """Whether a refused request means that the stream has come to an end, now known."""


def resume(policy: RetryPolicy, source: Source[T], deadline: float | None = None) -> Feed[T]:
    """Hands out everything, over as many connections as it takes.

    `deadline` is a time of `time.monotonic()`; past it `Timeout` is raised.
    """
    failures = 0
    while not source.done:
        before = source.received
        try:
            yield from _connection(source, deadline)
        except SandbankError as error:
            if isinstance(error, Timeout) and _left(deadline) <= 0:
                raise
            if source.explains(error):
                yield from _hand_out(source)
                continue
            failures = 1 if source.received > before else failures + 1
            # Silence is as good as a cut here: the rest is asked for again.
            cause = ConnectionFailed(error.message) if error.code == "timeout" else error
            pause = policy.pause(failures, cause)
            if pause is None:
                raise
            yield Sleep(min(pause, max(0.0, _left(deadline))))


def _connection(source: Source[T], deadline: float | None) -> Feed[T]:
    """One connection: until the source is done, an error, or a better one is due."""
    silence = min(SILENCE_SECONDS, _checked(deadline))
    reply: Reply = yield Open(replace(source.request(), silence=silence))
    if not reply.ok:
        raise reply.error()
    source.opened(reply)
    while not source.done:
        chunk: bytes | None = yield Read()
        if chunk is None:
            source.ended()
        else:
            source.feed(chunk)
        yield from _hand_out(source)
        if not source.done and silence - _checked(deadline) > OVERTIME_SECONDS:
            return


def _hand_out(source: Source[T]) -> Feed[T]:
    while (item := source.take()) is not None:
        yield Emit(item)


def _left(deadline: float | None) -> float:
    return float("inf") if deadline is None else deadline - time.monotonic()


def _checked(deadline: float | None) -> float:
    left = _left(deadline)
    if left <= 0:
        raise Timeout(
            "the time to wait is over", code="timeout", hint="what was waited for goes on"
        )
    return left
