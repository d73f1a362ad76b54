"""Every way a call can fail, as a class you can catch.

The server answers a failed request with a stable code, a sentence and often a hint; `error_of`
turns that into the class that fits. What happens before the server is reached is
`ConnectionFailed`, and `CommandFailed` is raised for commands that were run with `check=True`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .output import Result

__all__ = [
    "AtLimit",
    "BadRequest",
    "CommandFailed",
    "Conflict",
    "ConnectionFailed",
    "Forbidden",
    "Gone",
    "NotFound",
    "SandbankError",
    "Timeout",
    "TooMany",
    "Unauthorized",
    "Unavailable",
]

#: The code where nobody listens at the address, and this client has not met anybody there before.
NO_SERVER = "no_server"


class SandbankError(Exception):
    """The base of every error of this package. Test `code`, show `message` and `hint`."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "unknown",
        hint: str | None = None,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        request_id: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        #: A sentence for people.
        self.message = message
        #: Stable; the one to test.
        self.code = code
        #: What to do next, where there is something.
        self.hint = hint
        #: The HTTP status; none when no answer came.
        self.status = status
        #: Whether the same request may succeed later, unchanged.
        self.retryable = retryable
        #: Seconds that the server asks to wait before that.
        self.retry_after = retry_after
        #: Under this id the server's log says more.
        self.request_id = request_id
        #: What else the server told.
        self.details: Mapping[str, Any] = details or {}

    def __str__(self) -> str:
        text = f"{self.message} [{self.code}]"
        return f"{text}; {self.hint}" if self.hint else text


class BadRequest(SandbankError):
    """The request makes no sense to the server; sending it again will not help."""


class Unauthorized(SandbankError):
    """The token is missing or not valid."""


class Forbidden(SandbankError):
    """The token is valid but may not do this, or the sandbox's own permissions forbid it."""


class NotFound(SandbankError):
    """There is no such sandbox, command, file or port."""


class Gone(NotFound):
    """It was there and has ended; `details["cause"]` says why, so does the post-mortem."""


class Conflict(SandbankError):
    """It stands in another way than the request needs: paused, busy, taken, of another kind."""


class TooMany(SandbankError):
    """Too many requests, streams or commands at once; `retry_after` says when to come back."""


class AtLimit(TooMany):
    """The server has as many sandboxes as it may have."""


class Timeout(SandbankError):
    """It did not happen in time. What was asked for may still happen."""


class Unavailable(SandbankError):
    """The server, its engine or the sandbox cannot do it now."""


class ConnectionFailed(SandbankError):
    """No connection, or it broke before the whole answer was here."""

    def __init__(self, message: str, *, code: str = "connection_failed") -> None:
        super().__init__(message, code=code, retryable=True)


class CommandFailed(SandbankError):
    """A command that was run with `check=True` did not exit with 0; `result` has all of it."""

    def __init__(self, result: Result) -> None:
        how = result.ending.describe()
        last = result.stderr.strip().rpartition("\n")[2]
        super().__init__(
            f"the command {how}: {last}" if last else f"the command {how}", code="command_failed"
        )
        self.result = result


_BY_CODE: dict[str, type[SandbankError]] = {
    "at_limit": AtLimit,
    "closed": Gone,
    "gone": Gone,
    "sandbox_gone": Gone,
}

_BY_STATUS: dict[int, type[SandbankError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Timeout,
    409: Conflict,
    410: Gone,
    429: TooMany,
    502: Unavailable,
    503: Unavailable,
    504: Timeout,
    507: Unavailable,
}

#: Statuses after which the same request may succeed, when the body does not say.
_PASSING = (429, 503)


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> SandbankError:
    """The error that an answer stands for. Understands both dialects of the server."""
    told = _object(body)
    code = _text(told, "code") or _text(told, "error_code") or f"http_{status}"
    message = _text(told, "error") or _text(told, "message") or f"the server answered {status}"
    usual = SandbankError if status >= 500 else BadRequest
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, usual)
    retryable = told.get("retryable")
    inner = told.get("details")
    details: dict[str, Any] = inner if isinstance(inner, dict) else {}
    return kind(
        message,
        code=code,
        hint=_text(told, "hint") or _text(details, "hint"),
        status=status,
        retryable=retryable if isinstance(retryable, bool) else status in _PASSING,
        retry_after=_seconds(headers.get("retry-after")),
        request_id=_text(told, "requestId") or headers.get("x-request-id"),
        details=details,
    )


def redirected(status: int, target: str | None) -> SandbankError:
    """For an answer that sends us elsewhere, where no token may follow."""
    where = f": {target}" if target else ""
    hint = "use that address as `url`: a token is not sent where it was not meant for"
    return SandbankError(f"the server answers with another address{where}", code="redirected",
                         hint=hint, status=status)  # fmt: skip


def bad_answer(message: str) -> SandbankError:
    """For an answer that says nothing we understand."""
    hint = "is this a Sandbank server, and of a version that this package knows?"
    return SandbankError(message, code="bad_answer", hint=hint)


def _object(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _text(told: Mapping[str, Any], name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) and value else None


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value) if value else None
        return max(0.0, seconds) if seconds is not None and math.isfinite(seconds) else None
    except ValueError:
        return None  # A date, which our server never sends.
