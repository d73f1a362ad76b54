"""A session's stream of output, taken apart without a network."""

from __future__ import annotations

from typing import Any

import pytest

from sandbank import ConnectionFailed, Gone, NotFound, SandbankError, Timeout
from sandbank.effects import Emit, Open, Read, Reply, Request
from sandbank.sessions import ExecChunk, StreamError, _chunks

BODY = (
    b'event: chunk\ndata: {"chunk":"h\xc3\xa9","timestamp":5}\n\n'
    b": heartbeat\n\n"
    b'event: of a newer server\ndata: {"x":1}\n\n'
    b'event: done\r\ndata: {"exit_code":3,"cwd":"/tmp","duration_ms":7,"truncated":true}\r\n\r\n'
)


def chunks(pieces: list[bytes], reply: Reply | None = None) -> list[ExecChunk]:
    feed = _chunks(Request("POST", "/x"))
    left: list[bytes | None] = [*pieces, None]
    handed: list[ExecChunk] = []
    effect: Any = next(feed)
    while True:
        answer: object = None
        if isinstance(effect, Open):
            answer = reply or Reply(200, {})
        elif isinstance(effect, Read):
            answer = left.pop(0)
        elif isinstance(effect, Emit):
            handed.append(effect.item)
        try:
            effect = feed.send(answer)
        except StopIteration:
            return handed


def test_chunks_are_the_same_however_they_are_torn() -> None:
    whole = [ExecChunk("hé", 5), ExecChunk("", 0, True, 3, "/tmp", 7, True)]
    assert chunks([BODY]) == whole
    for at in range(1, len(BODY)):
        assert chunks([BODY[:at], BODY[at:]]) == whole, at


def test_an_end_before_the_end_is_an_error() -> None:
    with pytest.raises(ConnectionFailed):
        chunks([BODY[:-1]])
    with pytest.raises(StreamError, match="no luck"):
        chunks([b'event: error\ndata: {"error":"no luck"}\n\n'])
    with pytest.raises(Timeout) as late:
        chunks([b'event: error\ndata: {"error":"late","error_code":"COMMAND_TIMEOUT"}\n\n'])
    assert (late.value.code, late.value.message) == ("COMMAND_TIMEOUT", "late")
    with pytest.raises(Gone):
        chunks([b'event: error\ndata: {"error":"ended","error_code":"SESSION_DESTROYED"}\n\n'])
    with pytest.raises(SandbankError) as bad:
        chunks([b"event: chunk\ndata: {]\n\n"])
    assert bad.value.code == "bad_answer"
    told = b'{"error_code":"SESSION_NOT_FOUND","message":"no session"}'
    with pytest.raises(NotFound):
        chunks([], Reply(404, {}, told))


def test_silence_is_a_cut_and_a_heartbeat_is_life() -> None:
    feed = _chunks(Request("POST", "/x", silence=45.0))
    opened: Any = next(feed)
    assert opened.request.silence == 45.0, "between any two pieces, so a comment begins it anew"
    feed.send(Reply(200, {}))
    assert isinstance(feed.send(b": heartbeat\n\n"), Read)
    with pytest.raises(ConnectionFailed):
        feed.throw(Timeout("silence", code="timeout"))
