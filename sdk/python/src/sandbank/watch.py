"""What happens to files, as a feed that goes on after a cut without a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .decode import decode_json
from .effects import Request, get
from .feed import Feed

__all__ = ["WatchEvent"]


@dataclass(frozen=True)
class WatchEvent:
    """One change, or what is to be known about changes."""

    #: To go on from: `watch(after=seq)`.
    seq: int
    #: `ready` (every change from now on is told), `created`, `modified`, `removed`, `moved` (with
    #: everything below it), `reset` (changes may be missing: list again) or `end`.
    kind: str
    path: str | None = None
    #: The exact bytes where the path is not UTF-8.
    path_hex: str | None = None
    #: Where a moved one was.
    from_: str | None = None
    from_hex: str | None = None
    is_dir: bool | None = None
    #: Of `reset` and `end`.
    reason: str | None = None


class WatchSource(Feed):
    """The changes behind number `after`, or from now on."""

    name = "watch"

    def __init__(
        self,
        sandbox: str,
        path: str,
        recursive: bool,
        after: int | None,
        exclude: Sequence[str] | None,
    ) -> None:
        super().__init__()
        self._url = f"{sandbox}/files:watch"
        self._params = {"path": path, "recursive": "true" if recursive else "false"}
        if exclude is not None:
            self._params["exclude"] = ",".join(exclude)
        self._after = after
        self._is_ready = False

    def ask(self) -> Request:
        after = {} if self._after is None else {"after": str(self._after)}
        return get(self._url, **self._params, **after)

    def take(self) -> WatchEvent | None:
        while not self.done and (told := self.parser.take()) is not None:
            event = decode_json(WatchEvent, told.data.encode())
            self._after = event.seq
            self.done = event.kind == "end"
            # Every connection says it; whoever iterates has one.
            again, self._is_ready = self._is_ready, self._is_ready or event.kind == "ready"
            if not (again and event.kind == "ready"):
                return event
        return None
