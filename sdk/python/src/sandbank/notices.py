"""What of a request had no effect, told to who does not look at `warnings`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

__all__ = ["SandbankWarning"]

_PACKAGE = __name__.partition(".")[0]


class SandbankWarning(UserWarning):
    """The server did what it was asked, but not all of it; the text says what to do.

    `warnings.simplefilter("ignore", SandbankWarning)` silences it, `"error"` raises it.
    """


def tell(texts: Iterable[str]) -> list[str]:
    """Warns at the line that called this package, however deep in it we are."""
    told = list(texts)
    for text in told:
        warnings.warn(text, SandbankWarning, stacklevel=_level_of_caller())
    return told


def _level_of_caller() -> int:
    """Counted, because shells, terminals and `run` start commands from different depths."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == _PACKAGE
