"""The files of a sandbox's workspace.

Paths are relative to the workspace, or absolute and inside it. Contents are streamed both ways;
a download that breaks off goes on from the byte it reached, as long as the file stays the same.

`tar` in the sandbox packs and unpacks archives. To download, it writes a file into the workspace
first: a stream of the server's own could not go on after a cut, and a file can.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Sequence
from contextlib import suppress
from typing import Literal

from .commands import AsyncCommands, Commands
from .download import DownloadSource
from .driver import AsyncDriver, SyncDriver
from .effects import Content, Request, get
from .errors import NotFound
from .models import FileStat, Listing
from .resume import resume
from .search import (
    Case,
    NameRecord,
    Order,
    TextRecord,
    Tree,
    names,
    names_request,
    text,
    text_request,
    tree_of,
    tree_request,
)
from .stdin import AsyncStdin, Stdin, async_pieces, pieces
from .watch import WatchEvent, WatchSource

__all__ = ["AsyncFiles", "Files"]


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

    def _copy(self, source: str, target: str, overwrite: bool) -> Request:
        body = {"from": source, "to": target, "overwrite": overwrite}
        return Request("POST", f"{self._sandbox}/files:copy", json=body, limit=math.inf)

    def _chmod(self, path: str, mode: int, recursive: bool) -> Request:
        body = {"path": path, "mode": f"{mode:04o}", "recursive": recursive}
        return Request("POST", f"{self._sandbox}/files:chmod", json=body)

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

    def copy(self, source: str, target: str, *, overwrite: bool = False) -> FileStat:
        """Copies a file, a link or a whole tree, which appears when it is complete."""
        return self._io.ask(self._copy(source, target, overwrite), FileStat)

    def chmod(self, path: str, mode: int, *, recursive: bool = False) -> FileStat:
        """Sets permission bits; with `recursive` also of all that is below, links excepted."""
        return self._io.ask(self._chmod(path, mode, recursive), FileStat)

    def tree(
        self,
        path: str = ".",
        *,
        depth: int | None = None,
        nodes: int | None = None,
        timeout: float | None = None,
        stat: bool = False,
        hidden: bool = True,
        sort: bool = False,
    ) -> Tree:
        """Everything below a directory: 20 levels, 10 000 entries and 5 s where nothing is said."""
        request = tree_request(self._sandbox, path, depth, nodes, timeout, stat, hidden, sort)
        return tree_of(self._io.call(request))

    def search_names(
        self,
        pattern: str,
        *,
        kind: Literal["text", "glob", "regex"] = "text",
        path: str = "",
        case: Case = "smart",
        depth: int | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        hidden: bool = False,
        ignored: bool = False,
        sort: Order = "found",
    ) -> Generator[NameRecord, None, None]:
        """Files and directories by their names, as they are found; the last item is the end."""
        request = names_request(
            self._sandbox, pattern, kind=kind, path=path, case=case, depth=depth, limit=limit,
            timeout=timeout, hidden=hidden, ignored=ignored, sort=sort,
        )  # fmt: skip
        return self._io.iterate(names(request))

    def search_text(
        self,
        pattern: str,
        *,
        literal: bool = False,
        path: str = "",
        case: Case = "sensitive",
        word: bool = False,
        multiline: bool = False,
        globs: Sequence[str] = (),
        types: Sequence[str] = (),
        before: int = 0,
        after: int = 0,
        hidden: bool = False,
        ignored: bool = False,
        max_per_file: int | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        sort: Order = "found",
    ) -> Generator[TextRecord, None, None]:
        """Lines that match, as they are found; the last item is the end.

        What ignore-files exclude and what begins with a dot is left out unless asked for.
        """
        request = text_request(
            self._sandbox, pattern, literal=literal, path=path, case=case, word=word,
            multiline=multiline, globs=globs, types=types, before=before, after=after,
            hidden=hidden, ignored=ignored, max_per_file=max_per_file, limit=limit,
            timeout=timeout, sort=sort,
        )  # fmt: skip
        return self._io.iterate(text(request))

    def watch(
        self,
        path: str = ".",
        *,
        recursive: bool = True,
        after: int | None = None,
        exclude: Sequence[str] | None = None,
    ) -> Generator[WatchEvent, None, None]:
        """What happens below a directory, until `end`; goes on after a cut without a gap.

        Begins with `ready`: what was done before it is there already. `reset` means that changes
        may be missing, and that one must list again.
        """
        source = WatchSource(self._sandbox, path, recursive, after, exclude)
        return self._io.iterate(resume(self._io.policy, source))

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

    async def copy(self, source: str, target: str, *, overwrite: bool = False) -> FileStat:
        """Copies a file, a link or a whole tree, which appears when it is complete."""
        return await self._io.ask(self._copy(source, target, overwrite), FileStat)

    async def chmod(self, path: str, mode: int, *, recursive: bool = False) -> FileStat:
        """Sets permission bits; with `recursive` also of all that is below, links excepted."""
        return await self._io.ask(self._chmod(path, mode, recursive), FileStat)

    async def tree(
        self,
        path: str = ".",
        *,
        depth: int | None = None,
        nodes: int | None = None,
        timeout: float | None = None,
        stat: bool = False,
        hidden: bool = True,
        sort: bool = False,
    ) -> Tree:
        """Everything below a directory: 20 levels, 10 000 entries and 5 s where nothing is said."""
        request = tree_request(self._sandbox, path, depth, nodes, timeout, stat, hidden, sort)
        return tree_of(await self._io.call(request))

    def search_names(
        self,
        pattern: str,
        *,
        kind: Literal["text", "glob", "regex"] = "text",
        path: str = "",
        case: Case = "smart",
        depth: int | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        hidden: bool = False,
        ignored: bool = False,
        sort: Order = "found",
    ) -> AsyncGenerator[NameRecord, None]:
        """Files and directories by their names, as they are found; the last item is the end."""
        request = names_request(
            self._sandbox, pattern, kind=kind, path=path, case=case, depth=depth, limit=limit,
            timeout=timeout, hidden=hidden, ignored=ignored, sort=sort,
        )  # fmt: skip
        return self._io.iterate(names(request))

    def search_text(
        self,
        pattern: str,
        *,
        literal: bool = False,
        path: str = "",
        case: Case = "sensitive",
        word: bool = False,
        multiline: bool = False,
        globs: Sequence[str] = (),
        types: Sequence[str] = (),
        before: int = 0,
        after: int = 0,
        hidden: bool = False,
        ignored: bool = False,
        max_per_file: int | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        sort: Order = "found",
    ) -> AsyncGenerator[TextRecord, None]:
        """Lines that match, as they are found; the last item is the end.

        What ignore-files exclude and what begins with a dot is left out unless asked for.
        """
        request = text_request(
            self._sandbox, pattern, literal=literal, path=path, case=case, word=word,
            multiline=multiline, globs=globs, types=types, before=before, after=after,
            hidden=hidden, ignored=ignored, max_per_file=max_per_file, limit=limit,
            timeout=timeout, sort=sort,
        )  # fmt: skip
        return self._io.iterate(text(request))

    def watch(
        self,
        path: str = ".",
        *,
        recursive: bool = True,
        after: int | None = None,
        exclude: Sequence[str] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """What happens below a directory, until `end`; goes on after a cut without a gap.

        Begins with `ready`: what was done before it is there already. `reset` means that changes
        may be missing, and that one must list again.
        """
        source = WatchSource(self._sandbox, path, recursive, after, exclude)
        return self._io.iterate(resume(self._io.policy, source))

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
