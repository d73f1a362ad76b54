"""A file's bytes, over as many connections as it takes."""

from __future__ import annotations

from .effects import Reply, Request, get
from .errors import Conflict, ConnectionFailed, SandbankError


class DownloadSource:
    """A file's bytes from `offset` on, all of one version."""

    def __init__(self, sandbox: str, path: str) -> None:
        self.done = False
        self.received = 0
        self._sandbox, self._path = sandbox, path
        self._offset = 0
        self._size: int | None = None
        self._version = ""
        self._chunk = b""

    def request(self) -> Request:
        self._chunk = b""
        if self._offset == 0:
            return get(f"{self._sandbox}/files", path=self._path)
        headers = {"range": f"bytes={self._offset}-", "if-range": self._version}
        params = {"path": self._path}
        return Request("GET", f"{self._sandbox}/files", params, headers=headers, repeatable=True)

    def opened(self, reply: Reply) -> None:
        if self._offset > 0:
            place = reply.headers.get("content-range", "")
            if reply.status != 206 or not place.startswith(f"bytes {self._offset}-"):
                raise Conflict("the file was changed while it was read", code="file_changed",
                               hint="read it again from the beginning")  # fmt: skip
            return
        self._version = reply.headers.get("etag", "")
        length = reply.headers.get("content-length")
        self._size = int(length) if length else None

    def feed(self, chunk: bytes) -> None:
        self.received += len(chunk)
        self._chunk = chunk

    def ended(self) -> None:
        if self._size is not None and self._offset != self._size:
            raise ConnectionFailed(f"the file broke off at byte {self._offset} of {self._size}")
        self.done = True

    def take(self) -> bytes | None:
        if not self._chunk:
            return None
        chunk, self._chunk = self._chunk, b""
        self._offset += len(chunk)
        self.done = self._offset == self._size
        return chunk

    def explains(self, error: SandbankError) -> bool:
        return False
