"""Where nobody listens, that is told at once; a server that goes away for a while is waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import httpx
import pytest
from own_server import OwnServer

from sandbank import AsyncSandbank, ConnectionFailed, RetryPolicy, Sandbank, SandbankError

#: Tries as often as the usual one, without its pauses.
HASTY = RetryPolicy(first_pause=0.001, longest_pause=0.001)


class Counting(httpx.HTTPTransport):
    """A real network that counts what is sent into it, and what of that nobody took."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        self.refused = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        try:
            return super().handle_request(request)
        except httpx.ConnectError:
            self.refused.set()
            raise


class AsyncCounting(httpx.AsyncHTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        return await super().handle_async_request(request)


@pytest.fixture
def nobody() -> str:
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def assert_tells(error: SandbankError, address: str) -> None:
    assert isinstance(error, ConnectionFailed)
    assert error.code == "no_server"
    assert f"no server at http://{address}: start it with `sandbank serve`" in str(error)
    assert "set SANDBANK_URL" in str(error)


def test_a_first_connection_that_is_refused_is_told_at_once(nobody: str) -> None:
    network = Counting()
    with Sandbank(f"http://{nobody}", "t", retry=HASTY, transport=network) as client:
        calls: list[Callable[[], object]] = [
            client.health,
            client.sandboxes.create,
            lambda: next(client.events()),
        ]
        for number, call in enumerate(calls, 1):
            with pytest.raises(ConnectionFailed) as told:
                call()
            assert_tells(told.value, nobody)
            assert network.sent == number


async def test_asyncio_tells_it_at_once_as_well(nobody: str) -> None:
    network = AsyncCounting()
    client = AsyncSandbank(f"http://{nobody}", "t", retry=HASTY, transport=network)
    async with client:
        with pytest.raises(ConnectionFailed) as told:
            await client.health()
        assert_tells(told.value, nobody)
        with pytest.raises(ConnectionFailed) as told:
            await client.events().__anext__()
        assert_tells(told.value, nobody)
    assert network.sent == 2


async def test_a_name_with_several_addresses_is_refused_by_all_of_them(nobody: str) -> None:
    name = nobody.replace("127.0.0.1", "localhost")
    network = AsyncCounting()
    async with AsyncSandbank(f"http://{name}", "t", retry=HASTY, transport=network) as client:
        with pytest.raises(ConnectionFailed) as told:
            await client.health()
    assert_tells(told.value, name)
    assert network.sent == 1


def test_the_password_of_an_address_is_not_told(nobody: str) -> None:
    client = Sandbank(f"http://me:secret@{nobody}", "t")
    with client, pytest.raises(ConnectionFailed) as told:
        client.health()
    assert_tells(told.value, nobody)
    assert "secret" not in str(told.value)


def test_other_failures_of_a_first_connection_are_tried_again_and_name_the_address() -> None:
    sent: list[str] = []

    def unreachable(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        raise httpx.ConnectError("no route to host")

    transport = httpx.MockTransport(unreachable)
    client = Sandbank("http://far.example:8080", "t", retry=HASTY, transport=transport)
    with client, pytest.raises(ConnectionFailed) as told:
        client.health()
    assert len(sent) == HASTY.attempts
    assert "http://far.example:8080" in str(told.value)
    assert told.value.code == "connection_failed"


def test_a_server_that_was_there_is_waited_for(own_server: Callable[..., OwnServer]) -> None:
    server, network = own_server(), Counting()
    patient = RetryPolicy(attempts=600, first_pause=0.1, longest_pause=0.1)
    client = Sandbank(server.url, server.token, retry=patient, transport=network)
    with client, client.sandboxes.create(network="none") as sandbox:
        command = sandbox.commands.start("echo before; sleep 1; echo after")
        events = command.stream()
        assert next(events).text == "before\n"
        server.kill()

        def restart() -> None:
            assert network.refused.wait(30)
            server.start()

        restarting = threading.Thread(target=restart)
        restarting.start()
        try:
            assert client.health().ok
            assert "after\n" in [event.text for event in events]
        finally:
            restarting.join()
    assert network.refused.is_set()


def test_a_server_that_stays_away_is_given_up_and_named(
    own_server: Callable[..., OwnServer],
) -> None:
    server, network = own_server(), Counting()
    with Sandbank(server.url, server.token, retry=HASTY, transport=network) as client:
        assert client.health().ok
        server.kill()
        with pytest.raises(ConnectionFailed) as told:
            client.health()
    assert network.sent >= 1 + HASTY.attempts
    assert server.url in str(told.value)
    assert told.value.code == "connection_failed"
