"""When a stream is opened again, decided without a network or a real clock."""

from __future__ import annotations

from typing import Any

import pytest

from sandbank import Event, RetryPolicy
from sandbank.effects import Emit, Feed, Open, Read, Reply, Sleep
from sandbank.errors import ConnectionFailed, NotFound, SandbankError, Timeout, Unavailable
from sandbank.events import EventSource
from sandbank.resume import SILENCE_SECONDS, resume

POLICY = RetryPolicy(attempts=3, first_pause=1.0)
OK = Reply(200, {})


def event(seq: int) -> bytes:
    data = f'{{"seq":{seq},"timeMs":1,"kind":"k","detail":{{}},"sandboxId":null}}'
    return f"id: {seq}\nevent: k\ndata: {data}\n\n".encode()


class Driven:
    """A feed in the hands of a test, which answers what it asks for."""

    def __init__(self, feed: Feed[Event]) -> None:
        self._feed = feed
        self.asks: Any = next(feed)

    def answer(self, value: object = None) -> Driven:
        self.asks = self._feed.send(value)
        return self

    def fail(self, error: SandbankError) -> Driven:
        self.asks = self._feed.throw(error)
        return self

    def opened(self) -> Driven:
        assert isinstance(self.asks, Open)
        return self.answer(OK)


def cut() -> ConnectionFailed:
    return ConnectionFailed("cut")


def silence() -> Timeout:
    return Timeout("silence", code="timeout")


def test_what_was_handed_out_is_not_asked_for_again() -> None:
    feed = Driven(resume(POLICY, EventSource(None)))
    assert feed.asks.request.params == {"after": "0"}
    assert feed.asks.request.silence == SILENCE_SECONDS
    feed.opened().answer(event(1) + event(2) + event(3)[:20])
    assert isinstance(feed.asks, Emit)
    assert feed.asks.item.seq == 1
    assert feed.answer().asks.item.seq == 2
    assert isinstance(feed.answer().asks, Read)
    assert isinstance(feed.fail(cut()).asks, Sleep)
    assert feed.answer().asks.request.params == {"after": "2"}
    feed.opened().answer(event(2) + event(3))
    assert feed.asks.item.seq == 3, "the torn one comes whole, the second one not twice"


@pytest.mark.parametrize("error", [cut(), silence(), Unavailable("", status=503, retryable=True)])
def test_failures_in_a_row_are_bounded(error: SandbankError) -> None:
    feed = Driven(resume(POLICY, EventSource(None)))
    for _ in range(2):
        assert isinstance(feed.fail(error).asks, Sleep)
        feed.answer()
    with pytest.raises(type(error)):
        feed.fail(error)


def test_whatever_arrives_makes_the_failures_start_anew() -> None:
    feed = Driven(resume(POLICY, EventSource(None)))
    for _ in range(20):
        feed.opened().answer(b": heartbeat\n\n")
        assert isinstance(feed.fail(cut()).asks, Sleep)
        feed.answer()


def test_a_refusal_is_raised_at_once() -> None:
    feed = Driven(resume(POLICY, EventSource(None)))
    with pytest.raises(NotFound):
        feed.answer(Reply(404, {}, b"{}"))


def test_a_deadline_bounds_silence_however_late_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("sandbank.resume.time.monotonic", lambda: now)
    feed = Driven(resume(POLICY, EventSource(None), deadline=120.0))
    assert feed.asks.request.silence == 20
    now = 100.5
    feed.opened().answer(b": heartbeat\n\n")
    assert isinstance(feed.asks, Read), "half a second is not worth a new connection"
    now = 115.0
    feed.answer(b": heartbeat\n\n")
    assert isinstance(feed.asks, Open)
    assert feed.asks.request.silence == 5
    feed.opened()
    now = 120.0
    with pytest.raises(Timeout):
        feed.fail(silence())


def test_a_deadline_ends_a_stream_that_never_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("sandbank.resume.time.monotonic", lambda: now)
    feed = Driven(resume(POLICY, EventSource(None), deadline=101.0))
    feed.opened()
    now = 101.0
    with pytest.raises(Timeout):
        feed.answer(b": heartbeat\n\n")
