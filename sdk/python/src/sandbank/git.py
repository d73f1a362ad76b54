"""A repository in the workspace.

Looking runs nothing that the repository names; hooks and filters of what changes it run in the
sandbox, as they would by hand. What changes it is never sent twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .driver import AsyncDriver, SyncDriver
from .effects import Request, get

__all__ = [
    "AsyncGit",
    "Git",
    "GitBranch",
    "GitBranches",
    "GitCommit",
    "GitDiff",
    "GitEntry",
    "GitHead",
    "GitLog",
    "GitPerson",
    "GitShow",
    "GitStatus",
]


@dataclass(frozen=True)
class GitPerson:
    name: str
    email: str


@dataclass(frozen=True)
class GitHead:
    """What is checked out; no `branch` where none is, no `commit` before the first."""

    branch: str | None = None
    commit: str | None = None
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None


@dataclass(frozen=True)
class GitEntry:
    """A path that differs: `index` against the last commit, `worktree` against the index."""

    path: str
    index: str
    worktree: str
    #: Both sides of a merge changed it.
    conflict: bool
    submodule: bool
    #: Where a renamed or copied one was.
    from_: str | None = None
    path_hex: str | None = None
    from_hex: str | None = None


@dataclass(frozen=True)
class GitStatus:
    """That there is no repository is an answer, with a `reason`, and no error; so for all here."""

    is_repository: bool
    head: GitHead
    entries: tuple[GitEntry, ...]
    truncated: bool
    root: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GitDiff:
    """Differences as text, at most 2 MiB."""

    is_repository: bool
    diff: str
    binary: bool
    truncated: bool
    root: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GitShow:
    """A file as a commit has it; `content_base64` where it is no UTF-8."""

    is_repository: bool
    found: bool
    size: int
    truncated: bool
    commit: str | None = None
    kind: str | None = None
    content: str | None = None
    content_base64: str | None = None
    root: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GitCommit:
    """Times are Unix times in seconds."""

    id: str
    parents: tuple[str, ...]
    author: GitPerson
    authored_at: int
    committer: GitPerson
    committed_at: int
    message: str


@dataclass(frozen=True)
class GitLog:
    """Commits, newest first. With `start` as `revision` and a larger `after` the list goes on."""

    is_repository: bool
    commits: tuple[GitCommit, ...]
    more: bool
    start: str | None = None
    root: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GitBranch:
    name: str
    remote: bool
    current: bool
    commit: str
    committed_at: int
    upstream: str | None = None


@dataclass(frozen=True)
class GitBranches:
    is_repository: bool
    branches: tuple[GitBranch, ...]
    truncated: bool
    root: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _Committed:
    commit: str


class _GitRequests:
    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox

    def _look(self, verb: str, **params: Any) -> Request:
        given = {name: _text(value) for name, value in params.items() if value is not None}
        return get(f"{self._sandbox}/git:{verb}", **given)

    def _change(self, verb: str, **fields: Any) -> Request:
        body = {name: value for name, value in fields.items() if value is not None}
        return Request("POST", f"{self._sandbox}/git:{verb}", json=body)

    def _commit(
        self, message: str, author: GitPerson | None, amend: bool, path: str | None
    ) -> Request:
        person = None if author is None else {"name": author.name, "email": author.email}
        return self._change("commit", message=message, author=person, amend=amend, path=path)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Git(_GitRequests):
    """The repository in one sandbox, or one below it by its `path`."""

    def __init__(self, io: SyncDriver, sandbox: str) -> None:
        super().__init__(sandbox)
        self._io = io

    def status(
        self,
        path: str | None = None,
        *,
        untracked: Literal["normal", "all", "no"] | None = None,
        ignored: bool = False,
    ) -> GitStatus:
        """What differs from the last commit."""
        return self._io.ask(
            self._look("status", path=path, untracked=untracked, ignored=ignored), GitStatus
        )

    def diff(
        self,
        path: str | None = None,
        *,
        staged: bool = False,
        from_: str | None = None,
        to: str | None = None,
    ) -> GitDiff:
        """Differences as text: of the work tree, of the index if `staged`, or between commits."""
        return self._io.ask(
            self._look("diff", path=path, staged=staged, to=to, **{"from": from_}), GitDiff
        )

    def show(self, path: str, revision: str | None = None) -> GitShow:
        """A file as a commit has it; the last one where none is named."""
        return self._io.ask(self._look("show", path=path, revision=revision), GitShow)

    def log(
        self,
        path: str | None = None,
        *,
        revision: str | None = None,
        limit: int | None = None,
        after: int = 0,
    ) -> GitLog:
        """Commits, newest first: 50 where `limit` is not given, at most 500."""
        return self._io.ask(
            self._look("log", path=path, revision=revision, limit=limit, after=after), GitLog
        )

    def branches(self, path: str | None = None) -> GitBranches:
        """Branches, and those of remotes as last seen."""
        return self._io.ask(self._look("branches", path=path), GitBranches)

    def stage(
        self, paths: Sequence[str] = (), *, all: bool = False, path: str | None = None
    ) -> None:
        """Puts changes into the index: of `paths`, or `all`."""
        self._io.call(self._change("stage", paths=[*paths], all=all, path=path))

    def unstage(
        self, paths: Sequence[str] = (), *, all: bool = False, path: str | None = None
    ) -> None:
        """Takes changes out of the index; the work tree keeps them."""
        self._io.call(self._change("unstage", paths=[*paths], all=all, path=path))

    def commit(
        self,
        message: str,
        *,
        author: GitPerson | None = None,
        amend: bool = False,
        path: str | None = None,
    ) -> str:
        """Commits what is in the index and gives the commit's id."""
        return self._io.ask(self._commit(message, author, amend, path), _Committed).commit

    def checkout(self, branch: str, *, create: bool = False, path: str | None = None) -> None:
        """Checks out a branch; with `create` it is made first, from what is checked out."""
        self._io.call(self._change("checkout", branch=branch, create=create, path=path))


class AsyncGit(_GitRequests):
    """Like `Git`, awaited."""

    def __init__(self, io: AsyncDriver, sandbox: str) -> None:
        super().__init__(sandbox)
        self._io = io

    async def status(
        self,
        path: str | None = None,
        *,
        untracked: Literal["normal", "all", "no"] | None = None,
        ignored: bool = False,
    ) -> GitStatus:
        """What differs from the last commit."""
        return await self._io.ask(
            self._look("status", path=path, untracked=untracked, ignored=ignored), GitStatus
        )

    async def diff(
        self,
        path: str | None = None,
        *,
        staged: bool = False,
        from_: str | None = None,
        to: str | None = None,
    ) -> GitDiff:
        """Differences as text: of the work tree, of the index if `staged`, or between commits."""
        return await self._io.ask(
            self._look("diff", path=path, staged=staged, to=to, **{"from": from_}), GitDiff
        )

    async def show(self, path: str, revision: str | None = None) -> GitShow:
        """A file as a commit has it; the last one where none is named."""
        return await self._io.ask(self._look("show", path=path, revision=revision), GitShow)

    async def log(
        self,
        path: str | None = None,
        *,
        revision: str | None = None,
        limit: int | None = None,
        after: int = 0,
    ) -> GitLog:
        """Commits, newest first: 50 where `limit` is not given, at most 500."""
        return await self._io.ask(
            self._look("log", path=path, revision=revision, limit=limit, after=after), GitLog
        )

    async def branches(self, path: str | None = None) -> GitBranches:
        """Branches, and those of remotes as last seen."""
        return await self._io.ask(self._look("branches", path=path), GitBranches)

    async def stage(
        self, paths: Sequence[str] = (), *, all: bool = False, path: str | None = None
    ) -> None:
        """Puts changes into the index: of `paths`, or `all`."""
        await self._io.call(self._change("stage", paths=[*paths], all=all, path=path))

    async def unstage(
        self, paths: Sequence[str] = (), *, all: bool = False, path: str | None = None
    ) -> None:
        """Takes changes out of the index; the work tree keeps them."""
        await self._io.call(self._change("unstage", paths=[*paths], all=all, path=path))

    async def commit(
        self,
        message: str,
        *,
        author: GitPerson | None = None,
        amend: bool = False,
        path: str | None = None,
    ) -> str:
        """Commits what is in the index and gives the commit's id."""
        request = self._commit(message, author, amend, path)
        return (await self._io.ask(request, _Committed)).commit

    async def checkout(self, branch: str, *, create: bool = False, path: str | None = None) -> None:
        """Checks out a branch; with `create` it is made first, from what is checked out."""
        await self._io.call(self._change("checkout", branch=branch, create=create, path=path))
