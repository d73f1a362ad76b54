"""The client: where everything begins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from types import TracebackType

import httpx

from .driver import AsyncDriver, SyncDriver
from .effects import get
from .events import EventSource
from .location import locate
from .models import Doctor, Event, Health, Image, ImageList
from .resume import resume
from .retry import RetryPolicy
from .sandboxes import AsyncSandboxes, Sandboxes

__all__ = ["AsyncImages", "AsyncSandbank", "Images", "Sandbank"]

DEFAULT_TIMEOUT = 60.0


class Images:
    """The images of a server."""

    def __init__(self, io: SyncDriver) -> None:
        self._io = io

    def list(self) -> list[Image]:
        """Every image; `host` is the server's own /usr, read-only."""
        return [*self._io.ask(get("/v1/images"), ImageList).images]


class Sandbank:
    """A client of a Sandbank server.

    `url` and `token` are found by themselves on the server's own machine; elsewhere give them,
    or set `SANDBANK_URL` and `SANDBANK_TOKEN`. `timeout` is for one call with all its tries, in
    seconds; streams, waits and uploads have none, and commands may run as long as they like. One
    client may be used from several threads.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        retry: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._io = SyncDriver(locate(url, token), timeout, retry or RetryPolicy(), transport)
        self.url = self._io.url
        #: Make sandboxes and find them.
        self.sandboxes = Sandboxes(self._io)
        #: What sandboxes can be made of.
        self.images = Images(self._io)

    def health(self) -> Health:
        """Whether the server serves. Needs no token."""
        return self._io.ask(get("/v1/health"), Health)

    def doctor(self) -> Doctor:
        """What protects you on the server's machine."""
        return self._io.ask(get("/v1/doctor"), Doctor)

    def events(self, after: int | None = None) -> Generator[Event, None, None]:
        """Everything that happens, behind event number `after`, for ever.

        The stored past comes first. A broken connection is made again without a gap.
        """
        return self._io.iterate(resume(self._io.policy, EventSource(after)))

    def close(self) -> None:
        """Closes the connections; sandboxes and commands live on."""
        self._io.close()

    def __enter__(self) -> Sandbank:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncImages:
    """Like `Images`, awaited."""

    def __init__(self, io: AsyncDriver) -> None:
        self._io = io

    async def list(self) -> list[Image]:
        """Every image; `host` is the server's own /usr, read-only."""
        return [*(await self._io.ask(get("/v1/images"), ImageList)).images]


class AsyncSandbank:
    """Like `Sandbank`, for asyncio."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        retry: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._io = AsyncDriver(locate(url, token), timeout, retry or RetryPolicy(), transport)
        self.url = self._io.url
        #: Make sandboxes and find them.
        self.sandboxes = AsyncSandboxes(self._io)
        #: What sandboxes can be made of.
        self.images = AsyncImages(self._io)

    async def health(self) -> Health:
        """Whether the server serves. Needs no token."""
        return await self._io.ask(get("/v1/health"), Health)

    async def doctor(self) -> Doctor:
        """What protects you on the server's machine."""
        return await self._io.ask(get("/v1/doctor"), Doctor)

    def events(self, after: int | None = None) -> AsyncGenerator[Event, None]:
        """Everything that happens, behind event number `after`, for ever.

        The stored past comes first. A broken connection is made again without a gap.
        """
        return self._io.iterate(resume(self._io.policy, EventSource(after)))

    async def close(self) -> None:
        """Closes the connections; sandboxes and commands live on."""
        await self._io.close()

    async def __aenter__(self) -> AsyncSandbank:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
