"""A real server for every test: the one of SANDBANK_URL and SANDBANK_TOKEN, or one that is
started here from the binary in SANDBANK_BIN."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cutting_proxy import Cuts, CuttingProxy
from own_server import OwnServer

import sandbank
from sandbank import AsyncSandbank, AsyncSandbox, Sandbank, Sandbox


def pytest_report_header() -> str:
    return f"sandbank: {sandbank.__version__} from {Path(sandbank.__file__).parent}"


@pytest.fixture(scope="session", autouse=True)
def installed_package() -> None:
    """What users get is what is tested."""
    if os.environ.get("SANDBANK_TEST_INSTALLED"):
        source = Path(__file__).parent.parent / "src"
        assert source not in Path(sandbank.__file__).parents, "the source tree is being tested"


Starter = Callable[..., OwnServer]


@contextmanager
def _starter(factory: pytest.TempPathFactory) -> Iterator[Starter]:
    binary = os.environ["SANDBANK_BIN"]
    servers: list[OwnServer] = []

    def start(**settings: str) -> OwnServer:
        servers.append(OwnServer(binary, factory.mktemp("server"), settings))
        servers[-1].start()
        return servers[-1]

    try:
        yield start
    finally:
        for server in servers:
            server.remove()


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    """Starts servers of one's own, with settings of one's own; they end with the test."""
    with _starter(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address and the token of the server that most tests share."""
    with _starter(tmp_path_factory) as start, pytest.MonkeyPatch.context() as environment:
        own = start()
        environment.setenv("SANDBANK_URL", own.url)
        environment.setenv("SANDBANK_TOKEN", own.token)
        yield own.url, own.token


@pytest.fixture
def client(server: tuple[str, str]) -> Iterator[Sandbank]:
    with Sandbank(*server) as client:
        yield client


@pytest.fixture
def sandbox(client: Sandbank) -> Iterator[Sandbox]:
    with client.sandboxes.create(ports=[3000], network="none") as sandbox:
        yield sandbox


@pytest.fixture
async def async_client(server: tuple[str, str]) -> AsyncIterator[AsyncSandbank]:
    async with AsyncSandbank(*server) as client:
        yield client


@pytest.fixture
async def async_sandbox(async_client: AsyncSandbank) -> AsyncIterator[AsyncSandbox]:
    async with await async_client.sandboxes.create(ports=[3000], network="none") as sandbox:
        yield sandbox


@pytest.fixture
def cutting(server: tuple[str, str]) -> Iterator[Callable[[Cuts], CuttingProxy]]:
    """Puts a network that breaks in front of the server."""
    proxies: list[CuttingProxy] = []

    def start(cuts: Cuts) -> CuttingProxy:
        proxies.append(CuttingProxy(server[0], cuts))
        return proxies[-1]

    yield start
    for proxy in proxies:
        proxy.close()
