"""Answers of servers older, newer or other than expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbank import (
    AtLimit,
    BadRequest,
    Conflict,
    Event,
    Forbidden,
    Gone,
    Health,
    NotFound,
    SandbankError,
    Timeout,
    TooMany,
    Unauthorized,
    Unavailable,
)
from sandbank.decode import decode
from sandbank.errors import error_of
from sandbank.models import CommandStatus, Doctor


def test_fields_of_a_newer_server_are_ignored() -> None:
    told = {"ok": True, "engine": "native", "version": "9.9", "moonPhase": {"full": True}}
    assert decode(Health, told) == Health(True, "native", "9.9")
    several = decode(Health, {**told, "engines": ["native", "docker"]})
    assert several.engines == ("native", "docker")


def test_a_field_that_is_missing_or_odd_is_named() -> None:
    with pytest.raises(SandbankError, match="Health has no version"):
        decode(Health, {"ok": True, "engine": "native"})
    with pytest.raises(SandbankError, match="ok is not of type bool"):
        decode(Health, {"ok": "yes", "engine": "native", "version": "1"})
    with pytest.raises(SandbankError, match="controls is not a list"):
        decode(Doctor, {"healthy": True, "engine": "", "engineVersion": "", "version": "",
                        "controls": {}})  # fmt: skip


def test_free_objects_are_taken_as_they_are() -> None:
    told = {"seq": 1, "timeMs": 2, "kind": "k", "detail": {"any": [1]}}
    assert decode(Event, told).detail == {"any": [1]}
    with pytest.raises(SandbankError, match="detail is not an object"):
        decode(Event, {**told, "detail": 5})


def test_null_and_absent_are_none() -> None:
    told: dict[str, Any] = {
        "commandId": "c", "argv": ["a"], "pty": False, "state": "running", "pid": 1,
        "startedAtMs": 1, "stdoutBytes": 0, "stderrBytes": 0, "droppedBytes": 0, "lastSeq": 0,
        "stdinOffset": 0, "ending": None,
    }  # fmt: skip
    status = decode(CommandStatus, told)
    assert (status.ending, status.shell, status.argv) == (None, None, ("a",))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "bad_field", BadRequest),
        (413, "file_too_large", BadRequest),
        (401, "unauthorized", Unauthorized),
        (403, "permission_denied", Forbidden),
        (404, "sandbox_not_found", NotFound),
        (404, "gone", Gone),
        (404, "sandbox_gone", Gone),
        (410, "closed", Gone),
        (408, "slow_body", Timeout),
        (409, "sandbox_paused", Conflict),
        (429, "limit_reached", TooMany),
        (429, "at_limit", AtLimit),
        (502, "runner_failed", Unavailable),
        (503, "shutting_down", Unavailable),
        (504, "COMMAND_TIMEOUT", Timeout),
        (507, "storage_full", Unavailable),
        (500, "internal", SandbankError),
    ],
)
def test_codes_and_statuses_are_classes(status: int, code: str, kind: type) -> None:
    body = {"error": "a sentence", "code": code, "hint": "do this", "retryable": False,
            "requestId": "r1", "details": {"a": 1}}  # fmt: skip
    error = error_of(status, {"retry-after": "7"}, json.dumps(body).encode())
    assert type(error) is kind
    assert (error.code, error.message, error.hint) == (code, "a sentence", "do this")
    assert (error.status, error.retryable, error.retry_after) == (status, False, 7.0)
    assert (error.request_id, error.details) == ("r1", {"a": 1})
    assert str(error) == f"a sentence [{code}]; do this"


def test_the_sessions_dialect_and_strangers_are_understood() -> None:
    body = (
        b'{"error_code":"SESSION_NOT_FOUND","message":"no session","details":{"hint":"make one"}}'
    )
    told = error_of(404, {}, body)
    assert (type(told), told.code, told.message) == (NotFound, "SESSION_NOT_FOUND", "no session")
    assert told.hint == "make one"
    assert issubclass(Gone, NotFound), "what is gone is not found"
    stranger = error_of(503, {}, b"<html>")
    assert (type(stranger), stranger.code, stranger.retryable) == (Unavailable, "http_503", True)
