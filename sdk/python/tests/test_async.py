"""The asynchronous client: the same surface, and each of its methods once."""

from __future__ import annotations

import asyncio
import inspect
import io
import tarfile
from collections.abc import AsyncIterator

import pytest

import sandbank
from sandbank import AsyncSandbank, AsyncSandbox, CommandFailed, Gone, NotFound, Timeout

PAIRS = [name for name in sandbank.__all__ if f"Async{name}" in sandbank.__all__]


@pytest.mark.parametrize("name", PAIRS)
def test_both_clients_have_the_same_surface(name: str) -> None:
    sync, other = getattr(sandbank, name), getattr(sandbank, f"Async{name}")
    assert _surface(sync) == _surface(other)


def _surface(one: type) -> dict[str, list[str]]:
    names = [name for name in dir(one) if not name.startswith("_") or name == "__call__"]
    methods = {name: getattr(one, name) for name in names}
    return {
        name: list(inspect.signature(method).parameters) if callable(method) else []
        for name, method in methods.items()
        if name != "__call__" or "__call__" in vars(one)
    }


def test_every_class_with_a_twin_is_compared() -> None:
    assert {"Sandbank", "Sandbox", "Sandboxes", "Command", "Commands", "Files"} <= set(PAIRS)


async def test_commands(async_sandbox: AsyncSandbox) -> None:
    commands = async_sandbox.commands
    result = await commands.run("echo out; echo err >&2; exit 3", cwd=".", env={"A": "b"})
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    with pytest.raises(CommandFailed):
        await commands.run("false", check=True)
    assert (await commands.run(["cat"], stdin="given")).stdout == "given"
    assert (await commands.run(["head", "-c1"], stdin=b"x" * 3_000_000)).stdout == "x"

    async def pieces() -> AsyncIterator[bytes]:
        for word in (b"one ", b"two"):
            await asyncio.sleep(0)
            yield word

    assert (await commands.run(["cat"], stdin=pieces())).stdout == "one two"
    cat = await commands.start(["cat"], stdin=True)
    await cat.write("a")
    with pytest.raises(Timeout):
        await cat.wait(timeout=0.2)
    again = await commands.get(cat.id)
    await again.write(b"b")
    await again.close_stdin()
    assert "".join([event.text async for event in again]) == "ab"
    assert (await cat.wait()).stdout == "ab"
    assert (await cat.status()).state == "ended"
    sleeper = await commands.start("sleep 1000")
    await sleeper.signal("KILL")
    assert (await sleeper.wait()).exit_code == 137
    await sleeper.kill()
    assert len(await commands.list()) == 7


async def test_an_input_that_fails_ends_the_command(async_sandbox: AsyncSandbox) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"first"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        await async_sandbox.commands.run(["cat"], stdin=broken())
    assert (await async_sandbox.commands.list())[-1].state == "ended"


async def test_a_run_that_is_cancelled_ends_its_command(async_sandbox: AsyncSandbox) -> None:
    commands = async_sandbox.commands
    running = asyncio.create_task(commands.run("echo > begun; sleep 1000", stdin=b"x"))
    while "begun" not in [entry.name for entry in await async_sandbox.files.list()]:
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (left,) = await commands.list()
    ending = (await (await commands.get(left.command_id)).wait(timeout=30)).ending
    assert (ending.kind, ending.signal) == ("killed", 15)


async def test_many_commands_at_once(async_sandbox: AsyncSandbox) -> None:
    runs = [async_sandbox.commands.run(f"echo {number}") for number in range(20)]
    results = await asyncio.gather(*runs)
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(20)]


async def test_shells_and_terminals(async_sandbox: AsyncSandbox) -> None:
    shell = async_sandbox.shell()
    assert (await shell.run("cd /tmp; echo hi", check=True)).cwd == "/tmp"
    assert (await shell.run("read x; pwd; echo $x", stdin="in\n")).stdout == "/tmp\nin\n"
    streamed = [event.text async for event in shell.stream("echo a", merged=True)]
    assert "".join(streamed) == "a\n"
    terminal = await async_sandbox.terminal("bash", rows=30, cols=100)
    await terminal.resize(31, 101)
    await terminal.write("stty size; echo rea''dy\r")
    shown = b""
    async for data in terminal:
        shown += data
        if b"ready" in shown:
            terminal.detach()
    assert b"31 101" in shown
    again = await async_sandbox.terminal.attach(terminal.id)
    await again.write("exit 5\r")
    assert b"".join([data async for data in again]).startswith(shown)
    assert (await terminal.wait()).exit_code == 5
    other = await async_sandbox.terminal(["sleep", "1000"])
    await other.kill()
    assert (await other.wait()).exit_code == 137


async def test_files(async_sandbox: AsyncSandbox) -> None:
    files = async_sandbox.files
    assert (await files.write("d/f", b"\xff\0", mode=0o600)).mode == 0o600
    assert await files.read("d/f") == b"\xff\0"
    await files.write("d/g", "text")
    assert await files.read_text("d/g") == "text"
    await files.write("d/h", io.BytesIO(b"from a file"))
    assert b"".join([chunk async for chunk in files.stream("d/h")]) == b"from a file"
    assert [entry.name for entry in await files.list("d")] == ["f", "g", "h"]
    assert (await files.stat("d")).kind == "directory"
    await files.mkdir("e/e")
    await files.move("d/g", "e/g")
    await files.remove("d", recursive=True)
    packed = io.BytesIO(b"".join([chunk async for chunk in files.download_archive("e")]))
    with tarfile.open(fileobj=packed) as archive:
        assert "./g" in archive.getnames()
    await files.upload_archive(packed.getvalue(), "copy")
    assert await files.read_text("copy/g") == "text"
    with pytest.raises(NotFound):
        await files.read("d/f")


async def test_sandboxes_and_the_server(async_client: AsyncSandbank) -> None:
    assert (await async_client.health()).ok
    assert (await async_client.doctor()).controls
    assert await async_client.images.list()
    key = "python-sdk:async"
    async with await async_client.sandboxes.create(key=key, ports=[3000], vcpus=1) as sandbox:
        found = await async_client.sandboxes.get(sandbox.id)
        assert (await found.info()).key == key
        assert sandbox.id in [one.id for one in await async_client.sandboxes.list()]
        await sandbox.pause()
        assert (await sandbox.refresh()).state == "paused"
        await sandbox.resume()
        assert (await sandbox.stats()).memory_bytes > 0
        assert (await sandbox.containment()).contained
        url = await sandbox.url(3000)
        assert (await sandbox.ports.list()).published[0].url == url
        await sandbox.ports.unpublish(3000)
    with pytest.raises(Gone):
        await sandbox.stats()
    assert (await sandbox.post_mortem()).cause["kind"] == "stopped"
    async for event in async_client.events():
        if event.sandbox_id == sandbox.id and event.kind == "sandbox.stopped":
            break
