"""The state machine behind a stream, without a network: cut at every byte there is."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from sandbank import OutputEvent, SandbankError
from sandbank.effects import Reply
from sandbank.errors import ConnectionFailed, Gone
from sandbank.output import OutputSource


def output(seq: int, stream: str, data: bytes) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    return {"stream": stream, "data": encoded, "encoding": "base64", "seq": seq, "timeMs": seq}


RECORDS: list[dict[str, Any]] = [
    {"stream": "control", "type": "dropped", "frames": 2, "bytes": 9, "seq": 2},
    output(3, "stdout", b"one\n"),
    {"stream": "control", "type": "heartbeat", "seq": 3},
    output(4, "stderr", b"\xff\x00"),
    {"stream": "control", "type": "from a newer server", "seq": 4, "more": [1]},
    output(5, "stdout", b""),
    {"stream": "control", "type": "ending", "ending": {"kind": "exited", "code": 3, "new": 1},
     "exitCode": 3, "seq": 5, "timeMs": None},
]  # fmt: skip


def server(after: int) -> bytes:
    """What a server sends that is asked for everything after a record."""
    kept = [record for record in RECORDS if record["seq"] > after or record["stream"] == "control"]
    kept = [record for record in kept if record.get("type") != "dropped" or after < 2]
    return b"".join(json.dumps(record).encode() + b"\n" for record in kept)


def read(source: OutputSource, cut: int | None) -> list[OutputEvent]:
    """One connection, cut after so many bytes."""
    source.opened(Reply(200, {}))
    after = int(source.request().params["after"])
    source.feed(server(after)[:cut])
    events = []
    while (event := source.take()) is not None:
        events.append(event)
    return events


WHOLE = read(OutputSource("/c"), None)


def test_records_become_events_and_the_unknown_is_ignored() -> None:
    assert [event.type for event in WHOLE] == ["dropped", *["output"] * 3, "ending"]
    assert [event.stream for event in WHOLE] == [None, "stdout", "stderr", "stdout", None]
    assert [event.data for event in WHOLE] == [b"", b"one\n", b"\xff\x00", b"", b""]
    assert (WHOLE[0].dropped_bytes, WHOLE[0].dropped_frames) == (9, 2)
    assert (WHOLE[-1].exit_code, WHOLE[-1].ending and WHOLE[-1].ending.code) == (3, 3)
    assert WHOLE[2].text == "\ufffd\0"


def test_two_cuts_at_any_two_places_change_nothing() -> None:
    length = len(server(0))
    for first in range(length):
        for second in range(0, length, 31):
            source = OutputSource("/c")
            events = read(source, first)
            if not source.done:
                events += read(source, second)
            if not source.done:
                events += read(source, None)
            assert events == WHOLE, f"cut at {first} and {second}"


def test_an_event_that_was_not_taken_is_asked_for_again() -> None:
    source = OutputSource("/c")
    source.feed(server(0))
    assert source.take() == WHOLE[0]
    assert source.take() == WHOLE[1]
    assert source.request().params["after"] == "3"
    assert read(source, None) == WHOLE[2:]


def test_a_record_that_comes_twice_is_handed_out_once() -> None:
    twice = OutputSource("/c")
    lines = server(0).splitlines(keepends=True)
    twice.feed(b"".join(line * 2 for line in lines))
    events = []
    while (event := twice.take()) is not None:
        events.append(event)
    assert events == WHOLE


def test_a_gap_is_an_error_and_not_silence() -> None:
    source = OutputSource("/c", after=1)
    source.feed(json.dumps(output(3, "stdout", b"x")).encode() + b"\n")
    with pytest.raises(SandbankError, match="record 2 is missing"):
        source.take()


@pytest.mark.parametrize(
    "line",
    [
        b"{]",
        b"5",
        *(
            json.dumps(record).encode()
            for record in (
                {**output(1, "stdout", b"x"), "seq": "one"},
                {**output(1, "stdout", b"x"), "seq": True},
                {**output(1, "stdout", b"x"), "data": 5},
                {**output(1, "stdout", b"x"), "data": "a"},
                {"stream": "control", "type": "dropped", "seq": 1, "frames": 1, "bytes": "many"},
                {"stream": "control", "type": "ending", "seq": 1},
            )
        ),
    ],
)
def test_a_record_that_is_not_as_it_should_be_is_an_error_that_says_so(line: bytes) -> None:
    source = OutputSource("/c")
    source.feed(line + b"\n")
    with pytest.raises(SandbankError) as bad:
        source.take()
    assert bad.value.code == "bad_output"
    fine = OutputSource("/c")
    fine.feed(json.dumps(output(1, "stdout", b"x")).encode() + b"\n")
    assert fine.take() is not None


def test_a_body_that_ends_without_an_ending_is_a_cut() -> None:
    with pytest.raises(ConnectionFailed):
        OutputSource("/c").ended()


def test_gone_is_an_ending_only_for_a_stream_that_had_begun() -> None:
    gone = Gone("Not found", code="gone", hint="it was stopped")
    source = OutputSource("/c")
    assert not source.explains(gone)
    read(source, 100)
    assert source.explains(gone)
    event = source.take()
    assert event is not None
    assert event.ending is not None
    assert (event.ending.kind, event.ending.reason) == ("lost", "it was stopped")
    assert source.done
