"""Reaching what listens inside a sandbox. Only ports that it was created with can be published."""

from __future__ import annotations

from .driver import AsyncDriver, SyncDriver
from .effects import Request, get
from .errors import NotFound
from .models import PortList, PortReply

__all__ = ["AsyncPorts", "Ports"]


class _PortRequests:
    def __init__(self, sandbox: str) -> None:
        self._path = f"{sandbox}/ports"

    def _publish(self, port: int) -> Request:
        return get(f"{self._path}/{port}")

    def _unpublish(self, port: int) -> Request:
        return Request("DELETE", f"{self._path}/{port}")


def _url(port: int, reply: PortReply) -> str:
    if reply.url is None:
        raise NotFound(f"the sandbox was not created with port {port}", code="port_not_found",
                       hint=f"create it with ports=[{port}]")  # fmt: skip
    return reply.url


class Ports(_PortRequests):
    """The ports of one sandbox."""

    def __init__(self, io: SyncDriver, sandbox: str) -> None:
        super().__init__(sandbox)
        self._io = io

    def publish(self, port: int) -> str:
        """The URL of a port; published at the first call, the same ever after."""
        return _url(port, self._io.ask(self._publish(port), PortReply))

    def list(self) -> PortList:
        """The ports that may be published, and those that are."""
        return self._io.ask(get(self._path), PortList)

    def unpublish(self, port: int) -> None:
        """Closes a published port."""
        self._io.call(self._unpublish(port))


class AsyncPorts(_PortRequests):
    """Like `Ports`, awaited."""

    def __init__(self, io: AsyncDriver, sandbox: str) -> None:
        super().__init__(sandbox)
        self._io = io

    async def publish(self, port: int) -> str:
        """The URL of a port; published at the first call, the same ever after."""
        return _url(port, await self._io.ask(self._publish(port), PortReply))

    async def list(self) -> PortList:
        """The ports that may be published, and those that are."""
        return await self._io.ask(get(self._path), PortList)

    async def unpublish(self, port: int) -> None:
        """Closes a published port."""
        await self._io.call(self._unpublish(port))
