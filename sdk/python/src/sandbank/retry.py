"""When a request is sent again, and after how long.

Only requests that are marked `repeatable` ever are: reading, and starting something under a key
that the server knows it by. Whether and when is decided here, without a clock or a socket.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import NO_SERVER, ConnectionFailed, SandbankError

__all__ = ["RetryPolicy"]


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is. `RetryPolicy(attempts=1)` never tries twice.

    The pause doubles from `first_pause` up to `longest_pause`, and a random half of it is taken
    off so that many clients do not come back at once. A server that asks for a longer time is
    given it, up to `longest_retry_after`; beyond that the error is raised.
    """

    attempts: int = 8
    first_pause: float = 0.1
    longest_pause: float = 5.0
    longest_retry_after: float = 30.0

    def pause(self, failures: int, error: SandbankError) -> float | None:
        """Seconds to wait after this many failures in a row; none when it is over."""
        if failures >= self.attempts or not may_pass(error):
            return None
        asked = error.retry_after or 0.0
        if asked > self.longest_retry_after:
            return None
        doubled = self.first_pause * 2.0 ** min(failures - 1, 30)
        pause = min(self.longest_pause, doubled) * random.uniform(0.5, 1.0)
        return asked + pause


def may_pass(error: SandbankError) -> bool:
    """Whether the failure says nothing about the request itself."""
    if isinstance(error, ConnectionFailed):
        # Nobody listens, and nobody ever did: only a person can change that.
        return error.code != NO_SERVER
    return error.status in (429, 503) and error.retryable
