"""The files of a sandbox's workspace.

Paths are relative to the workspace, or absolute and inside it. Contents are streamed both ways;
a download that breaks off goes on from the byte it reached, as long as the file stays the same.

The server has no route for archives, so `tar` in the sandbox does that work. To download, it
writes a file into the workspace first: output of a command is kept only in part, a file whole.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Generator
from contextlib import suppress

from .commands import AsyncCommands, Commands
from .driver import AsyncDriver, SyncDriver
from .effects import Content, Reply, Request, get
from .errors import Conflict, ConnectionFailed, NotFound, SandbankError
from .models import FileStat, Listing
from .resume import resume
from .stdin import AsyncStdin, Stdin, async_pieces, pieces

__all__ = ["AsyncFiles", "Files"]


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


class _Archive:
    """A directory of our own in the workspace, where `tar` leaves what it makes.

    It is there before `tar` starts, because `tar` complains about directories that change.
    """

    def __init__(self, path: str) -> None:
        self.directory = f".sandbank-{uuid.uuid4().hex}"
        self.file = f"{self.directory}/archive.tar"
        self.argv = ["tar", "-cf", self.file, f"--exclude={self.directory}", "-C", path, "."]


_EXTRACT = ("tar", "-xf", "-", "--no-same-owner")


class _FileRequests:
    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox

    def _get(self, verb: str, path: str) -> Request:
        return get(f"{self._sandbox}/files:{verb}", path=path)

    def _put(self, path: str, content: Content, mode: int | None) -> Request:
        params = {"path": path}
        if mode is not None:
            params["mode"] = f"{mode:04o}"
        return Request("PUT", f"{self._sandbox}/files", params, content=content, limit=math.inf)

    def _mkdir(self, path: str, parents: bool, *, ours: bool = False) -> Request:
        body = {"path": path, "parents": parents}
        return Request("POST", f"{self._sandbox}/files:mkdir", json=body, repeatable=ours)

    def _move(self, source: str, target: str, overwrite: bool) -> Request:
        body = {"from": source, "to": target, "overwrite": overwrite}
        return Request("POST", f"{self._sandbox}/files:move", json=body)

    def _remove(self, path: str, recursive: bool, *, ours: bool = False) -> Request:
        """`ours` has a name that nobody else uses, so doing it twice is the same as once."""
        params = {"path": path, "recursive": "true" if recursive else "false"}
        return Request("DELETE", f"{self._sandbox}/files", params, repeatable=ours)


class Files(_FileRequests):
    """The files of one sandbox."""

    def __init__(self, io: SyncDriver, sandbox: str, commands: Commands) -> None:
        super().__init__(sandbox)
        self._io, self._commands = io, commands

    def read(self, path: str) -> bytes:
        """A whole file."""
        return b"".join(self.stream(path))

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """A whole file as text."""
        return self.read(path).decode(encoding)

    def stream(self, path: str) -> Generator[bytes, None, None]:
        """A file piece by piece, however large it is."""
        return self._io.iterate(resume(self._io.policy, DownloadSource(self._sandbox, path)))

    def write(self, path: str, content: Stdin, *, mode: int | None = None) -> FileStat:
        """Writes a file with everything above it. It is replaced at once when all has arrived.

        `content` is bytes, text, an open binary file or an iterable of bytes.
        """
        body: Content = pieces(content)
        if isinstance(content, (bytes, str)):
            body = content.encode() if isinstance(content, str) else content
        return self._io.ask(self._put(path, body, mode), FileStat)

    def list(self, path: str = ".") -> Listing:
        """What is in a directory, sorted by name."""
        return self._io.ask(self._get("list", path), Listing)

    def stat(self, path: str) -> FileStat:
        """What a path names."""
        return self._io.ask(self._get("stat", path), FileStat)

    def mkdir(self, path: str, *, parents: bool = True) -> FileStat:
        """Makes a directory; with `parents` also those above it, and one that is there is fine."""
        return self._io.ask(self._mkdir(path, parents), FileStat)

    def move(self, source: str, target: str, *, overwrite: bool = False) -> FileStat:
        """Moves or renames."""
        return self._io.ask(self._move(source, target, overwrite), FileStat)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file or an empty directory; with `recursive` all that is in it, too."""
        self._io.call(self._remove(path, recursive))

    def upload_archive(self, archive: Stdin, path: str = ".") -> None:
        """Unpacks an uncompressed tar archive into a directory, which is made if need be."""
        if path != ".":
            self.mkdir(path)
        self._commands.run(_EXTRACT, cwd=path, stdin=archive, check=True)

    def download_archive(self, path: str = ".") -> Generator[bytes, None, None]:
        """A directory as an uncompressed tar archive, piece by piece.

        The cost: the whole archive is written into the workspace first and needs room there
        while it is read. So it survives cuts as any file does.
        """
        archive = _Archive(path)
        self._io.call(self._mkdir(archive.directory, True, ours=True))
        try:
            self._commands.run(archive.argv, check=True)
            yield from self.stream(archive.file)
        finally:
            with suppress(NotFound):
                self._io.call(self._remove(archive.directory, True, ours=True))


class AsyncFiles(_FileRequests):
    """Like `Files`, awaited."""

    def __init__(self, io: AsyncDriver, sandbox: str, commands: AsyncCommands) -> None:
        super().__init__(sandbox)
        self._io, self._commands = io, commands

    async def read(self, path: str) -> bytes:
        """A whole file."""
        return b"".join([chunk async for chunk in self.stream(path)])

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """A whole file as text."""
        return (await self.read(path)).decode(encoding)

    def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """A file piece by piece, however large it is."""
        return self._io.iterate(resume(self._io.policy, DownloadSource(self._sandbox, path)))

    async def write(self, path: str, content: AsyncStdin, *, mode: int | None = None) -> FileStat:
        """Writes a file with everything above it. It is replaced at once when all has arrived.

        `content` is bytes, text, an open binary file or an iterable of bytes, also an
        asynchronous one.
        """
        body: bytes | AsyncIterable[bytes] = async_pieces(content)
        if isinstance(content, (bytes, str)):
            body = content.encode() if isinstance(content, str) else content
        return await self._io.ask(self._put(path, body, mode), FileStat)

    async def list(self, path: str = ".") -> Listing:
        """What is in a directory, sorted by name."""
        return await self._io.ask(self._get("list", path), Listing)

    async def stat(self, path: str) -> FileStat:
        """What a path names."""
        return await self._io.ask(self._get("stat", path), FileStat)

    async def mkdir(self, path: str, *, parents: bool = True) -> FileStat:
        """Makes a directory; with `parents` also those above it, and one that is there is fine."""
        return await self._io.ask(self._mkdir(path, parents), FileStat)

    async def move(self, source: str, target: str, *, overwrite: bool = False) -> FileStat:
        """Moves or renames."""
        return await self._io.ask(self._move(source, target, overwrite), FileStat)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file or an empty directory; with `recursive` all that is in it, too."""
        await self._io.call(self._remove(path, recursive))

    async def upload_archive(self, archive: AsyncStdin, path: str = ".") -> None:
        """Unpacks an uncompressed tar archive into a directory, which is made if need be."""
        if path != ".":
            await self.mkdir(path)
        await self._commands.run(_EXTRACT, cwd=path, stdin=archive, check=True)

    async def download_archive(self, path: str = ".") -> AsyncGenerator[bytes, None]:
        """A directory as an uncompressed tar archive, piece by piece.

        The cost: the whole archive is written into the workspace first and needs room there
        while it is read. So it survives cuts as any file does.
        """
        archive = _Archive(path)
        await self._io.call(self._mkdir(archive.directory, True, ours=True))
        try:
            await self._commands.run(archive.argv, check=True)
            async for chunk in self.stream(archive.file):
                yield chunk
        finally:
            with suppress(NotFound):
                await self._io.call(self._remove(archive.directory, True, ours=True))
