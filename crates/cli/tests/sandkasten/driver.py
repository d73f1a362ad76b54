"""Every method of Sandkasten's published client, unchanged, against a real server."""

import asyncio
import io
import os
import tempfile
from pathlib import Path

import httpx
from sandkasten import SandboxClient
from sandkasten.exceptions import SandkastenStreamError

URL, KEY = os.environ["URL"], os.environ["KEY"]
KEEPS_WORKSPACES = os.environ["KEEPS_WORKSPACES"] == "1"


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


async def refused(awaitable, status):
    try:
        await awaitable
    except httpx.HTTPStatusError as error:
        equal(error.response.status_code, status)
        assert "error_code" in error.response.json()
        return
    raise AssertionError(f"nothing was refused with {status}")


async def shell(client, session):
    result = await session.exec("mkdir -p d && cd d && export A=5 && f() { echo f$1; } && pwd")
    equal((result.exit_code, result.output, result.cwd), (0, "/workspace/d", "/workspace/d"))
    result = await session.exec("echo $A; f 7; pwd; echo err >&2; exit_code() { return 3; }; exit_code")
    equal((result.exit_code, result.output), (3, "5\nf7\n/workspace/d\nerr"))
    assert not result.truncated and result.duration_ms >= 0
    raw = await session.exec("printf 'x\\n\\n'", raw_output=True)
    equal(raw.output, "x\n\n")
    await refused(session.exec("sleep 60", timeout_ms=200), 504)
    equal((await session.exec("echo still $A")).output, "still 5")
    again = await client.get_session(session.id)
    equal((await again.exec("pwd")).output, "/workspace/d")
    equal((await session.info()).cwd, "/workspace/d")
    await session.exec("cd /workspace")


async def streaming(session):
    # The second line is written only after the first was seen here.
    script = "echo first; until [ -e /workspace/go ]; do sleep 0.02; done; echo zweitens é; exit 4"
    seen, done = "", None
    async for chunk in session.exec_stream(script, timeout_ms=60000):
        if chunk.done:
            done = chunk
            continue
        assert chunk.timestamp > 0
        seen += chunk.output
        if seen == "first\n":
            await session.write("go", b"")
    equal(seen, "first\nzweitens é\n")
    equal((done.exit_code, done.cwd), (4, "/workspace"))
    try:
        async for _ in session.exec_stream("sleep 60", timeout_ms=200):
            pass
        raise AssertionError("a timeout was not told")
    except SandkastenStreamError as error:
        assert "timeout" in str(error), error


async def files(session):
    noise = os.urandom(300_000)
    await session.write("a/b.bin", noise)
    result = await session.read("/workspace/a/b.bin")
    equal((result.content, result.truncated), (noise, False))
    part = await session.read("a/b.bin", max_bytes=1000)
    equal((part.content, part.truncated), (noise[:1000], True))
    await session.write("text", "grüß dich")
    equal((await session.exec("cat text")).output, "grüß dich")
    await session.write("empty", "")
    equal((await session.read("empty")).content, b"")
    await refused(session.read("none"), 404)
    await refused(session.write("/etc/passwd", "x"), 400)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "up.bin"
        source.write_bytes(noise)
        equal(await session.upload(source), ["/workspace/up.bin"])
    equal((await session.read("up.bin")).content, noise)
    paths = await session.upload(io.BytesIO(noise), dest_path="/workspace/x/y", filename="z")
    equal(paths, ["/workspace/x/y/z"])
    equal((await session.read("x/y/z")).content, noise)


async def workspaces(client):
    if not KEEPS_WORKSPACES:
        equal(await client.list_workspaces(), [])
        await client.delete_workspace("none-such")
        return
    async with await client.create_session(workspace_id="kept-one") as session:
        equal((await session.info()).workspace_id, "kept-one")
        await session.write("note", "stays")
    equal([workspace.id for workspace in await client.list_workspaces()], ["kept-one"])
    async with await client.create_session(workspace_id="kept-one") as session:
        equal((await session.read("note")).content, b"stays")
    await client.delete_workspace("kept-one")
    equal(await client.list_workspaces(), [])


async def main():
    async with SandboxClient(base_url=URL, api_key=KEY) as client:
        session = await client.create_session(ttl_seconds=600)
        equal((len(session.id), session.id[8]), (12, "-"))
        info = await session.info()
        equal((info.image, info.status, info.cwd), ("python", "running", "/workspace"))
        assert info.expires_at > info.created_at
        equal([one.id for one in await client.list_sessions()], [session.id])
        await shell(client, session)
        await streaming(session)
        await files(session)
        stats = await session.stats()
        assert stats.memory_bytes > 0 and stats.memory_limit > 0 and stats.cpu_usage_usec > 0
        await session.destroy()
        equal([one.status for one in await client.list_sessions()], ["destroyed"])
        await refused(session.exec("true"), 410)
        await refused(client.get_session("01234567-89a"), 404)
        await workspaces(client)
    async with SandboxClient(base_url=URL, api_key="wrong") as stranger:
        await refused(stranger.list_sessions(), 401)
    print("every method works")


asyncio.run(main())
