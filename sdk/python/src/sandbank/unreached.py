"""What a request that httpx could not bring through means."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from .errors import NO_SERVER, ConnectionFailed, SandbankError, Timeout


class Reach:
    """Whether a client has ever met its server.

    A refused connection means that nobody listens. To a client that was answered before, that is
    a server which is being started again, and worth waiting for; to a new one it is a wrong
    address or a server that was never started, and is told at once.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        # Without a password that the address may have: errors end up in logs.
        self._address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._met = False

    def met(self) -> None:
        self._met = True

    def failure(self, error: httpx.HTTPError) -> SandbankError:
        text = str(error) or type(error).__name__
        if isinstance(error, httpx.ConnectError) and not self._met and _is_refusal(error):
            return ConnectionFailed(
                f"no server at {self._address}: start it with `sandbank serve`, or set "
                f"SANDBANK_URL to where it is ({text})",
                code=NO_SERVER,
            )
        if not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
            # There was a connection, and it broke.
            self._met = True
        if isinstance(error, httpx.TimeoutException) and not isinstance(
            error, httpx.ConnectTimeout
        ):
            return Timeout(f"{self._address} did not answer in time ({text})", code="timeout")
        return ConnectionFailed(f"the connection to {self._address} failed: {text}")


def _is_refusal(error: BaseException) -> bool:
    """Whether every address that was tried refused; a name may have several."""
    reasons = [*_reasons(error)]
    return bool(reasons) and all(isinstance(one, ConnectionRefusedError) for one in reasons)


def _reasons(error: BaseException) -> Iterator[BaseException]:
    # A group of Python 3.11 or of its backport: both have `exceptions`.
    below = getattr(error, "exceptions", None) or [error.__cause__ or error.__context__]
    for one in below:
        if one is None:
            yield error
        else:
            yield from _reasons(one)
