"""What the server did otherwise than asked is on what it made, and is warned of."""

from __future__ import annotations

import uuid
import warnings

import httpx
import pytest

from sandbank import AsyncSandbank, Sandbank, SandbankWarning

NETWORK = "network: this sandbox, which was there already"


def test_a_sandbox_that_is_found_with_another_network_says_so(client: Sandbank) -> None:
    key = f"warned:{uuid.uuid4().hex}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = client.sandboxes.create(key=key, network="none")
        same = client.sandboxes.create(key=key, network="none")
    with first:
        assert first.warnings == same.warnings == []
        with pytest.warns(SandbankWarning, match=NETWORK) as seen:
            again = client.sandboxes.create(key=key, network="default")
        assert (again.id, again.created) == (first.id, False)
        assert [str(one.message) for one in seen] == again.warnings
        assert seen[0].filename == __file__, "the line that asked is named"
        with warnings.catch_warnings():
            warnings.simplefilter("error", SandbankWarning)
            with pytest.raises(SandbankWarning, match=NETWORK):
                client.sandboxes.create(key=key, network="default")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", SandbankWarning)
            silenced = client.sandboxes.create(key=key, network="default")
        assert silenced.warnings == again.warnings
        assert client.sandboxes.get(first.id).warnings == []


async def test_asyncio_says_so_as_well(async_client: AsyncSandbank) -> None:
    key = f"warned:{uuid.uuid4().hex}"
    async with await async_client.sandboxes.create(key=key, network="none") as first:
        with pytest.warns(SandbankWarning, match=NETWORK) as seen:
            again = await async_client.sandboxes.create(key=key, network="default")
        assert [str(one.message) for one in seen] == again.warnings
        assert seen[0].filename == __file__
        command = await first.commands.start("true")
        assert command.warnings == []


def test_a_start_has_its_warnings_from_however_deep_it_was_made() -> None:
    # This client sends no field that the server does not know: the server is a function here.
    told = "timout: there is no such field; did you mean timeoutMs?"
    ending = b'{"stream":"control","type":"ending","ending":{"kind":"exited","code":0},"seq":0}\n'

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/logs"):
            return httpx.Response(200, content=iter([ending]))
        made: dict[str, object] = {"sandboxId": "s", "created": True}
        if request.url.path.endswith("/commands"):
            made = {"commandId": "c", "attached": False, "warnings": [told]}
        return httpx.Response(200, json=made)

    with Sandbank("http://x", "t", transport=httpx.MockTransport(answer)) as client:
        sandbox = client.sandboxes.create()
        assert sandbox.warnings == []
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            command = sandbox.commands.start("true")
            sandbox.commands.run("true")
            shell = sandbox.shell().start("true")
            terminal = sandbox.terminal()
    assert command.warnings == shell.warnings == terminal.command.warnings == [told]
    assert [(str(one.message), one.filename) for one in seen] == [(told, __file__)] * 4
