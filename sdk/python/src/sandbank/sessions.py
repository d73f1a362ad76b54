"""The sessions API: one shell per session, workspaces that outlive it.

The names are those of the `sandkasten` package, so that a program written for it changes its
import and little else. It is asynchronous only, as that one is. New programs are better served
by `sandbank.AsyncSandbank`, whose output keeps its two streams and resumes after a cut.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar, Union

import httpx

from .decode import decode, decode_json
from .driver import AsyncDriver
from .effects import CREATE_SECONDS, Emit, Feed, Open, Read, Reply, Request, get, segment
from .errors import ConnectionFailed, Gone, SandbankError, Timeout, Unauthorized, bad_answer
from .location import Location, locate
from .resume import SILENCE_SECONDS
from .retry import RetryPolicy
from .sse import EventParser

__all__ = [
    "ExecChunk",
    "ExecResult",
    "ReadResult",
    "SandboxClient",
    "Session",
    "SessionInfo",
    "SessionStats",
    "StreamError",
    "WorkspaceInfo",
]

T = TypeVar("T")

#: Of an answer to `exec` beyond the command's own time.
EXEC_SLACK_SECONDS = 30.0

#: The longest that any server lets a command run; 0 asks for the server's own limit.
LONGEST_EXEC_SECONDS = 600.0


class StreamError(SandbankError):
    """The server reported a failure inside the stream; `code` is the server's."""


@dataclass(frozen=True)
class ExecResult:
    """A command that has ended. `output` has both streams; `cwd` is where the shell is now."""

    exit_code: int
    cwd: str
    output: str
    truncated: bool
    duration_ms: int


@dataclass(frozen=True)
class ExecChunk:
    """A piece of output; the last one has no output but `done`, and how the command ended."""

    output: str
    timestamp: int
    done: bool = False
    exit_code: int = 0
    cwd: str = ""
    duration_ms: int = 0
    #: With `done`: some output was dropped, because it was read too slowly.
    truncated: bool = False


@dataclass(frozen=True)
class SessionInfo:
    """A session as it stands: `running`, `destroying`, `destroyed`, `expired` or `crashed`.

    Times are RFC 3339 in UTC. Only a session that was just made has an `acquire_source`.
    """

    id: str
    image: str
    status: str
    cwd: str
    created_at: str
    expires_at: str
    last_activity: str | None = None
    workspace_id: str | None = None
    acquire_source: str | None = None
    acquire_detail: str | None = None


@dataclass(frozen=True)
class SessionStats:
    """What a session uses."""

    memory_bytes: int
    cpu_usage_usec: int
    memory_limit: int | None = None


@dataclass(frozen=True)
class ReadResult:
    """A file's content; `truncated` when it has more than was asked for."""

    content: bytes
    path: str
    truncated: bool

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True)
class WorkspaceInfo:
    """A workspace that is kept, and what it takes on disk."""

    id: str
    bytes: int | None = None


def _locate(base_url: str | None, api_key: str | None) -> Location:
    where = locate(base_url, api_key or os.environ.get("SANDKASTEN_API_KEY", "").strip() or None)
    if where.token is None:
        raise Unauthorized(
            f"no API key for the server at {where.url}: pass api_key, or set SANDKASTEN_API_KEY or"
            " SANDBANK_TOKEN",
            code="no_api_key",
            hint="for a server of this machine, set SANDBANK_DATA_DIR to its data directory",
        )
    return where


class SandboxClient:
    """A client of the sessions API.

    Without an address it is that of `SANDBANK_URL`, or the server of this machine. Without a key it
    is `SANDKASTEN_API_KEY`, else the token that `Sandbank()` would use.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        where = _locate(base_url, api_key)
        self._io = AsyncDriver(where, timeout, RetryPolicy(), transport)

    async def create_session(
        self,
        image: str | None = "python",
        ttl_seconds: int | None = None,
        workspace_id: str | None = None,
    ) -> Session:
        """Makes a session; it ends `ttl_seconds` after its last use. Never sent twice."""
        asked = {"image": image, "ttl_seconds": ttl_seconds, "workspace_id": workspace_id}
        body = {name: value for name, value in asked.items() if value is not None}
        request = Request("POST", "/v1/sessions", json=body, least=CREATE_SECONDS)
        reply = await self._io.call(request)
        return Session(self._io, decode_json(SessionInfo, reply.body, camel=False))

    async def get_session(self, session_id: str) -> Session:
        """The session of that id."""
        reply = await self._io.call(get(f"/v1/sessions/{segment(session_id)}"))
        return Session(self._io, decode_json(SessionInfo, reply.body, camel=False))

    async def list_sessions(self) -> list[SessionInfo]:
        """Every session there was, the newest first."""
        found = _json(await self._io.call(get("/v1/sessions")))
        rows = found.get("sessions") if isinstance(found, dict) else found
        return [decode(SessionInfo, row, camel=False) for row in rows or []]

    async def list_workspaces(self) -> list[WorkspaceInfo]:
        """Every workspace that is kept."""
        found = _json(await self._io.call(get("/v1/workspaces")))
        rows = found.get("workspaces") if isinstance(found, dict) else found
        return [decode(WorkspaceInfo, row, camel=False) for row in rows or []]

    async def delete_workspace(self, workspace_id: str) -> None:
        """Deletes a workspace; fine if it is not there."""
        await self._io.call(Request("DELETE", f"/v1/workspaces/{segment(workspace_id)}"))

    async def close(self) -> None:
        """Closes the connections; sessions live on."""
        await self._io.close()

    async def __aenter__(self) -> SandboxClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Session:
    """A session: a shell that remembers, and files. In an `async with` it ends with it."""

    def __init__(self, io: AsyncDriver, info: SessionInfo) -> None:
        self._io = io
        self._info = info
        self._path = f"/v1/sessions/{segment(info.id)}"

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def acquire_source(self) -> str | None:
        """Of one from `create_session`: `pool` when it was kept ready, `cold` when it was made."""
        return self._info.acquire_source

    async def exec(
        self, cmd: str, timeout_ms: int = 30_000, raw_output: bool = False
    ) -> ExecResult:
        """Runs a script in the session's shell. Out of time is an error of the class `Timeout`.

        `timeout_ms` 0 and what is above the server's own limit mean that limit. Scripts of one
        session take turns; waiting for its turn is not counted there, but 30 s of it are the most
        that this client waits beside the script's own time. Never repeated.
        """
        seconds = timeout_ms / 1000 or LONGEST_EXEC_SECONDS
        request = self._exec("exec", cmd, timeout_ms, raw_output)
        reply = await self._io.call(replace(request, limit=seconds + EXEC_SLACK_SECONDS))
        return decode_json(ExecResult, reply.body, camel=False)

    def exec_stream(
        self, cmd: str, timeout_ms: int = 30_000, raw_output: bool = False
    ) -> AsyncGenerator[ExecChunk, None]:
        """Runs a script and hands out its output as it comes; the last chunk is `done`.

        Unlike `Command.stream` this cannot be resumed: a cut raises `ConnectionFailed`, and so
        does a stream without even a heartbeat.
        """
        request = self._exec("exec/stream", cmd, timeout_ms, raw_output)
        return self._io.iterate(_chunks(replace(request, silence=SILENCE_SECONDS)))

    def _exec(self, verb: str, cmd: str, timeout_ms: int, raw_output: bool) -> Request:
        body = {"cmd": cmd, "timeout_ms": timeout_ms, "raw_output": raw_output}
        return Request("POST", f"{self._path}/{verb}", json=body)

    async def write(self, path: str, content: str | bytes) -> None:
        """Writes a file, with the directories above it."""
        data = content.encode() if isinstance(content, str) else content
        body = {"path": path, "content_base64": base64.b64encode(data).decode()}
        await self._io.call(Request("POST", f"{self._path}/fs/write", json=body))

    async def read(self, path: str, max_bytes: int | None = None) -> ReadResult:
        """Reads a file, or the first `max_bytes` of it."""
        params = {"path": path}
        if max_bytes is not None:
            params["max_bytes"] = str(max_bytes)
        told = _object(_json(await self._io.call(get(f"{self._path}/fs/read", **params))))
        try:
            content = base64.b64decode(str(told.get("content_base64") or ""), validate=True)
        except ValueError as error:
            raise bad_answer(f"the file's content is not base64: {error}") from error
        return ReadResult(content, str(told.get("path", path)), bool(told.get("truncated")))

    async def upload(
        self,
        file: Union[str, Path, bytes, IO[bytes]],
        dest_path: str = "/workspace",
        filename: str | None = None,
    ) -> list[str]:
        """Uploads a local file (its path, its bytes, or open) into a directory of the session."""
        name, data = _named(file, filename)
        form = {"file": (name, data), "path": (None, dest_path)}
        reply = await self._io.call(Request("POST", f"{self._path}/fs/upload", files=form))
        return [str(path) for path in _object(_json(reply)).get("paths") or []]

    async def stats(self) -> SessionStats:
        """What it uses."""
        reply = await self._io.call(get(f"{self._path}/stats"))
        return decode_json(SessionStats, reply.body, camel=False)

    async def info(self) -> SessionInfo:
        """How it stands."""
        reply = await self._io.call(get(self._path))
        found = decode_json(SessionInfo, reply.body, camel=False)
        # The server says it only once.
        source = found.acquire_source or self._info.acquire_source
        self._info = replace(found, acquire_source=source)
        return self._info

    async def destroy(self) -> None:
        """Ends it; its workspace stays, if it has a name."""
        await self._io.call(Request("DELETE", self._path))

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.destroy()


def _json(reply: Reply) -> Any:
    try:
        return json.loads(reply.body)
    except ValueError as error:
        raise bad_answer(f"the answer is no JSON: {error}") from error


def _object(told: Any) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise bad_answer("the answer is not an object")
    return told


def _named(file: Union[str, Path, bytes, IO[bytes]], filename: str | None) -> tuple[str, bytes]:
    if isinstance(file, (str, Path)):
        return filename or Path(file).name, Path(file).read_bytes()
    if isinstance(file, bytes):
        return filename or "file", file
    return filename or Path(str(getattr(file, "name", "file"))).name, file.read()


def _chunks(request: Request) -> Feed[ExecChunk]:
    try:
        yield from _events(request)
    except Timeout as error:
        if error.status is not None:
            raise
        # Not even a heartbeat: to a stream, silence is a dead connection.
        raise ConnectionFailed(error.message) from error


def _events(request: Request) -> Feed[ExecChunk]:
    reply: Reply = yield Open(request)
    if not reply.ok:
        raise reply.error()
    parser = EventParser()
    while True:
        data: bytes | None = yield Read()
        if data is None:
            raise ConnectionFailed("the output broke off before the command's end; it may have run")
        parser.feed(data)
        while (told := parser.take()) is not None:
            body = _event_body(told.data)
            if told.event == "chunk":
                yield Emit(ExecChunk(body.get("chunk", ""), body.get("timestamp", 0)))
            elif told.event == "error":
                raise _failure(body)
            elif told.event == "done":
                yield Emit(ExecChunk("", body.get("timestamp", 0), True, body.get("exit_code", 0),
                                     body.get("cwd", ""), body.get("duration_ms", 0),
                                     bool(body.get("truncated"))))  # fmt: skip
                return


def _event_body(data: str) -> dict[str, Any]:
    try:
        return _object(json.loads(data))
    except ValueError as error:
        raise bad_answer(f"an event of the stream is no JSON: {error}") from error


#: The same classes as where the answer itself is the error.
_BY_CODE: dict[str, type[SandbankError]] = {
    "COMMAND_TIMEOUT": Timeout,
    "SESSION_CRASHED": Gone,
    "SESSION_DESTROYED": Gone,
    "SESSION_EXPIRED": Gone,
}


def _failure(body: dict[str, Any]) -> SandbankError:
    code = str(body.get("error_code") or "stream_error")
    message = str(body.get("error") or "the command failed")
    return _BY_CODE.get(code, StreamError)(message, code=code, status=200)
