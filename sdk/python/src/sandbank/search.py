"""What is below a directory, and searches in it: answers of lines, the last of which is the end.

A search cannot be resumed, because nobody keeps what it has found: one that breaks off is
`ConnectionFailed`, and an answer without its end is never taken for a whole one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, Union

from .decode import decode, decode_json
from .effects import Emit, Feed, Open, Read, Reply, Request, get
from .errors import ConnectionFailed, bad_answer

__all__ = ["FoundLine", "FoundName", "NamesEnd", "SkippedFiles", "TextEnd", "Tree", "TreeEntry"]

T = TypeVar("T")

Case: TypeAlias = Literal["sensitive", "insensitive", "smart"]
Order: TypeAlias = Literal["found", "path"]

#: Seconds that the server gives a search, where the caller does not say.
SEARCH_SECONDS = 30.0

#: And how much longer its connection may be silent.
GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class TreeEntry:
    """What is somewhere below a directory. `size` and what follows only with `stat=True`."""

    path: str
    #: `file`, `directory`, `symlink` or `other`.
    kind: str
    #: The exact bytes where the path is not UTF-8.
    path_hex: str | None = None
    size: int | None = None
    mode: int | None = None
    modified_ms: int | None = None
    #: Of a symbolic link.
    target: str | None = None


@dataclass(frozen=True)
class Tree:
    """All that is below a directory; iterate it. `truncated` when there is more than is told."""

    entries: tuple[TreeEntry, ...]
    truncated: bool = False
    #: Of that: `nodes`, `depth`, `time` or `bytes`.
    reason: str | None = None
    #: Directories that could not be read.
    unreadable: int = 0

    def __iter__(self) -> Iterator[TreeEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True)
class _TreeEnd:
    truncated: bool
    reason: str | None = None
    unreadable: int = 0


@dataclass(frozen=True)
class FoundName:
    """A file or directory by its name."""

    path: str
    kind: str
    path_hex: str | None = None
    type: Literal["entry"] = "entry"


@dataclass(frozen=True)
class NamesEnd:
    """The last of a search for names."""

    matches: int
    nodes: int
    truncated: bool
    #: Of that: `limit`, `time` or `nodes`.
    reason: str | None = None
    unreadable: int = 0
    elapsed_ms: int = 0
    type: Literal["end"] = "end"


@dataclass(frozen=True)
class FoundLine:
    """A line with a match, or one of its context; `ranges` are bytes of the line."""

    path: str
    line: int
    offset: int
    text: str
    ranges: tuple[tuple[int, int], ...] = ()
    more_ranges: bool = False
    #: Where `text` begins in a line that was cut, and how long that is.
    text_at: int = 0
    cut: int | None = None
    #: Some bytes of it are no UTF-8.
    lossy: bool = False
    path_hex: str | None = None
    type: Literal["match", "context"] = "match"


@dataclass(frozen=True)
class SkippedFiles:
    """What was not searched, by the reason."""

    binary: int = 0
    too_large: int = 0
    unreadable: int = 0
    special: int = 0
    links: int = 0


@dataclass(frozen=True)
class TextEnd:
    """The last of a search for text."""

    matches: int
    files_searched: int
    files_matched: int
    skipped: SkippedFiles
    bytes: int
    truncated: bool
    #: Of that: `limit`, `time`, `bytes` or `nodes`.
    reason: str | None = None
    elapsed_ms: int = 0
    type: Literal["end"] = "end"


NameRecord: TypeAlias = Union[FoundName, NamesEnd]
TextRecord: TypeAlias = Union[FoundLine, TextEnd]


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else str(round(seconds * 1000))


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _flag(value: bool) -> str:
    return "true" if value else "false"


def tree_request(
    sandbox: str,
    path: str,
    depth: int | None,
    nodes: int | None,
    timeout: float | None,
    stat: bool,
    hidden: bool,
    sort: bool,
) -> Request:
    params = _given(
        path=path,
        depth=None if depth is None else str(depth),
        nodes=None if nodes is None else str(nodes),
        timeMs=_milliseconds(timeout),
        stat=_flag(stat),
        hidden=_flag(hidden),
        sort=_flag(sort),
    )
    return get(f"{sandbox}/files:tree", **params)


def tree_of(reply: Reply) -> Tree:
    *lines, last = reply.body.rstrip(b"\n").split(b"\n")
    end = _object(last or b"{}").get("end")
    if end is None:
        raise ConnectionFailed("the tree broke off before its end")
    told = decode(_TreeEnd, end)
    entries = tuple(decode_json(TreeEntry, line) for line in lines)
    return Tree(entries, told.truncated, told.reason, told.unreadable)


def names_request(
    sandbox: str,
    pattern: str,
    *,
    kind: Literal["text", "glob", "regex"],
    path: str,
    case: Case,
    depth: int | None,
    limit: int | None,
    timeout: float | None,
    hidden: bool,
    ignored: bool,
    sort: Order,
) -> Request:
    params = _given(
        pattern=pattern,
        kind=kind,
        path=path,
        case=case,
        depth=None if depth is None else str(depth),
        limit=None if limit is None else str(limit),
        timeMs=_milliseconds(timeout),
        hidden=_flag(hidden),
        ignored=_flag(ignored),
        sort=sort,
    )
    return Request("GET", f"{sandbox}/search:names", params, silence=_silence(timeout))


def text_request(
    sandbox: str,
    pattern: str,
    *,
    literal: bool,
    path: str,
    case: Case,
    word: bool,
    multiline: bool,
    globs: Sequence[str],
    types: Sequence[str],
    before: int,
    after: int,
    hidden: bool,
    ignored: bool,
    max_per_file: int | None,
    limit: int | None,
    timeout: float | None,
    sort: Order,
) -> Request:
    body = _given(
        pattern=pattern,
        literal=literal,
        path=path,
        case=case,
        word=word,
        multiline=multiline,
        globs=[*globs],
        types=[*types],
        before=before,
        after=after,
        hidden=hidden,
        ignored=ignored,
        maxPerFile=max_per_file,
        limit=limit,
        timeMs=None if timeout is None else round(timeout * 1000),
        sort=sort,
    )
    return Request("POST", f"{sandbox}/search:text", json=body, silence=_silence(timeout))


def _silence(timeout: float | None) -> float:
    """A search that finds nothing says nothing before its end."""
    return (SEARCH_SECONDS if timeout is None else timeout) + GRACE_SECONDS


def names(request: Request) -> Feed[NameRecord]:
    """Each as it is found, and the end."""
    return _found(request, _name)


def text(request: Request) -> Feed[TextRecord]:
    """Each line as it is found, and the end."""
    return _found(request, _line)


def _found(request: Request, read: Callable[[dict[str, Any]], tuple[T, bool]]) -> Feed[T]:
    reply: Reply = yield Open(request)
    if not reply.ok:
        raise reply.error()
    buffer = bytearray()
    while True:
        chunk: bytes | None = yield Read()
        if chunk is None:
            raise ConnectionFailed("the search broke off before its end")
        buffer += chunk
        *lines, rest = bytes(buffer).split(b"\n")
        buffer = bytearray(rest)
        for line in lines:
            record, is_end = read(_object(line))
            yield Emit(record)
            if is_end:
                return


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise bad_answer(f"a line is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise bad_answer("a line is not an object")
    return value


def _name(record: dict[str, Any]) -> tuple[NameRecord, bool]:
    if "end" in record:
        return decode(NamesEnd, record["end"]), True
    return decode(FoundName, record), False


def _line(record: dict[str, Any]) -> tuple[TextRecord, bool]:
    if "end" in record:
        return decode(TextEnd, record["end"]), True
    if "context" in record:
        return replace(decode(FoundLine, record["context"]), type="context"), False
    return decode(FoundLine, record.get("match")), False
