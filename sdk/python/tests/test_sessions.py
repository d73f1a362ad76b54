"""The sessions API, against the real server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbank import BadRequest, Gone, NotFound, Timeout
from sandbank.sessions import SandboxClient, Session

#: The image that any server has; the package's own default is `python`.
IMAGE = os.environ.get("SANDBANK_TEST_SESSION_IMAGE", "base")


@pytest.fixture
async def sessions(server: tuple[str, str]) -> AsyncIterator[SandboxClient]:
    async with SandboxClient(*server) as client:
        yield client


@pytest.fixture
async def session(sessions: SandboxClient) -> AsyncIterator[Session]:
    async with await sessions.create_session(image=IMAGE, ttl_seconds=300) as session:
        yield session


async def test_a_session_runs_commands_and_remembers(session: Session) -> None:
    first = await session.exec("cd /tmp; echo hello; exit_code=3; (exit 3)")
    assert (first.exit_code, first.output.strip(), first.cwd) == (3, "hello", "/tmp")
    assert first.duration_ms >= 0
    assert not first.truncated
    assert (await session.exec("echo $exit_code")).output.strip() == "3"


async def test_output_is_streamed_and_ends_with_done(session: Session) -> None:
    chunks = [chunk async for chunk in session.exec_stream("echo a; echo b; (exit 4)")]
    assert "".join(chunk.output for chunk in chunks).split() == ["a", "b"]
    assert [chunk.done for chunk in chunks].count(True) == 1
    assert (chunks[-1].done, chunks[-1].exit_code, chunks[-1].truncated) == (True, 4, False)


async def test_out_of_time_is_an_error(session: Session) -> None:
    with pytest.raises(Timeout) as late:
        await session.exec("sleep 1000", timeout_ms=300)
    assert late.value.code == "COMMAND_TIMEOUT"
    with pytest.raises(Timeout) as streamed:
        async for _ in session.exec_stream("sleep 1000", timeout_ms=300):
            pass
    assert streamed.value.code == "COMMAND_TIMEOUT"


async def test_no_time_means_the_servers_own_limit(server: tuple[str, str]) -> None:
    async with (
        SandboxClient(*server, timeout=2.0) as hasty,
        await hasty.create_session(image=IMAGE) as session,
    ):
        assert (await session.exec("sleep 3; echo late", timeout_ms=0)).output == "late"


async def test_files_go_in_and_come_out(session: Session, tmp_path: Path) -> None:
    data = bytes(range(256)) * 100
    await session.write("dir/blob", data)
    result = await session.read("dir/blob")
    assert (result.content, result.truncated) == (data, False)
    part = await session.read("dir/blob", max_bytes=10)
    assert (part.content, part.truncated) == (data[:10], True)
    await session.write("text", "tëxt")
    assert (await session.read("text")).text == "tëxt"
    (tmp_path / "local.bin").write_bytes(data)
    paths = await session.upload(tmp_path / "local.bin", "/workspace/up")
    assert paths == ["/workspace/up/local.bin"]
    assert (await session.read("up/local.bin")).content == data
    with pytest.raises(NotFound) as missing:
        await session.read("missing")
    assert missing.value.code == "FILE_NOT_FOUND"


async def test_sessions_are_found_listed_and_destroyed(sessions: SandboxClient) -> None:
    made = await sessions.create_session(image=IMAGE)
    assert made.acquire_source in ("pool", "cold")
    assert (await made.info()).acquire_source == made.acquire_source
    found = await sessions.get_session(made.id)
    assert found.acquire_source is None
    info = await found.info()
    assert (info.id, info.status, info.image) == (made.id, "running", IMAGE)
    assert made.id in [one.id for one in await sessions.list_sessions()]
    assert (await found.stats()).memory_bytes >= 0
    await found.destroy()
    with pytest.raises(Gone) as gone:
        await found.exec("true")
    assert gone.value.code == "SESSION_DESTROYED"
    with pytest.raises(Gone):
        async for _ in found.exec_stream("true"):
            pass


async def test_a_workspace_outlives_its_session(sessions: SandboxClient) -> None:
    workspace = "python-sdk-test"
    async with await sessions.create_session(image=IMAGE, workspace_id=workspace) as first:
        await first.write("kept", "still here")
    async with await sessions.create_session(image=IMAGE, workspace_id=workspace) as second:
        assert (await second.read("kept")).text == "still here"
    assert workspace in [one.id for one in await sessions.list_workspaces()]
    await sessions.delete_workspace(workspace)
    assert workspace not in [one.id for one in await sessions.list_workspaces()]


async def test_mistakes_have_classes(sessions: SandboxClient) -> None:
    with pytest.raises(NotFound) as unknown:
        await sessions.get_session("00000000-000")
    assert unknown.value.code == "SESSION_NOT_FOUND"
    with pytest.raises(BadRequest) as odd:
        await sessions.get_session("not an id")
    assert odd.value.code == "INVALID_REQUEST"
