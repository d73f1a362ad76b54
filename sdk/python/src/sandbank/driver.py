"""Performs effects with httpx: the only module that talks to the network.

`SyncDriver` and `AsyncDriver` are the same few lines twice; everything worth thinking about is
in the generators that they drive.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from .effects import (
    Effect,
    Emit,
    Feed,
    Op,
    Open,
    Patience,
    Read,
    Reply,
    Request,
    Send,
    Sleep,
    ask,
    call,
)
from .errors import BadRequest, SandbankError, Timeout
from .location import Location, is_loopback
from .retry import RetryPolicy
from .unreached import Reach

T = TypeVar("T")

#: A server that cannot be connected to within this time counts as unreachable.
CONNECT_SECONDS = 10.0

#: Shorter than the time after which the server closes idle connections, so that a request is
#: not sent into one that is being closed.
KEEPALIVE_SECONDS = 10.0

_LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_SECONDS
)


class _Driver:
    def __init__(self, location: Location, timeout: float, policy: RetryPolicy) -> None:
        parts = urlsplit(location.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"{location.url!r} is not the http or https address of a server"
            raise BadRequest(message, code="bad_url")
        self.url = location.url.rstrip("/")
        self.reach = Reach(self.url)
        self.policy = policy
        self.patience = Patience(policy, timeout)
        self._timeout = timeout
        headers = {"accept-encoding": "identity", "user-agent": "sandbank-python"}
        if location.token:
            headers["authorization"] = f"Bearer {location.token}"
        self._options: dict[str, Any] = {
            "headers": headers,
            "limits": _LIMITS,
            # A proxy of the environment cannot reach this machine's own loopback address.
            "trust_env": not is_loopback(location.url),
        }

    def _arguments(self, request: Request) -> dict[str, Any]:
        limit = self._timeout if request.limit is None else request.limit
        silence = request.silence or (self._timeout if math.isinf(limit) else limit)
        arguments: dict[str, Any] = {
            "method": request.method,
            "url": self.url + request.path,
            "headers": dict(request.headers),
            "timeout": httpx.Timeout(
                connect=min(CONNECT_SECONDS, silence),
                read=silence,
                write=self._timeout,
                pool=None,
            ),
        }
        if request.params:
            arguments["params"] = dict(request.params)
        if request.json is not None:
            arguments["json"] = request.json
        if request.content is not None:
            arguments["content"] = request.content
        if request.files is not None:
            arguments["files"] = request.files
        return arguments


class _WholeBody:
    """An answer that is read whole, within its limit: a server that trickles is late, too."""

    def __init__(self, request: Request) -> None:
        self.data = bytearray()
        limit = math.inf if request.limit is None else request.limit
        self._deadline = time.monotonic() + limit

    def add(self, chunk: bytes) -> None:
        self.data += chunk
        if time.monotonic() > self._deadline:
            raise Timeout("the server did not answer in time", code="timeout")


class SyncDriver(_Driver):
    """Performs effects and waits for them."""

    def __init__(
        self,
        location: Location,
        timeout: float,
        policy: RetryPolicy,
        transport: httpx.BaseTransport | None,
    ) -> None:
        super().__init__(location, timeout, policy)
        self._http = httpx.Client(transport=transport, **self._options)

    def close(self) -> None:
        self._http.close()

    def call(self, request: Request) -> Reply:
        return self.run(call(self.patience, request))

    def ask(self, request: Request, model: type[T]) -> T:
        return self.run(ask(self.patience, request, model))

    def run(self, op: Op[T]) -> T:
        try:
            effect = next(op)
            while True:
                try:
                    answer = self._perform(effect)
                except SandbankError as error:
                    effect = op.throw(error)
                else:
                    effect = op.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Sleep):
            return time.sleep(effect.seconds)
        if not isinstance(effect, Send):
            raise TypeError("streams are iterated, not run")
        body = _WholeBody(effect.request)
        try:
            with self._http.stream(**self._arguments(effect.request)) as response:
                self.reach.met()
                for chunk in response.iter_bytes():
                    body.add(chunk)
        except httpx.HTTPError as error:
            raise self.reach.failure(error) from error
        return Reply(response.status_code, response.headers, bytes(body.data))

    def iterate(self, feed: Feed[T]) -> Generator[T, None, None]:
        body = _Body(self)
        try:
            effect = next(feed)
            while True:
                if isinstance(effect, Emit):
                    yield effect.item
                    effect = feed.send(None)
                    continue
                try:
                    answer = body.perform(effect)
                except SandbankError as error:
                    effect = feed.throw(error)
                else:
                    effect = feed.send(answer)
        except StopIteration:
            return
        finally:
            body.close()


class _Body:
    """The one answer that an iteration has open."""

    def __init__(self, driver: SyncDriver) -> None:
        self._driver = driver
        self._response: httpx.Response | None = None
        self._chunks: Generator[bytes, None, None] | None = None

    def perform(self, effect: Effect) -> Any:
        if isinstance(effect, (Send, Sleep)):
            self.close()
            return self._driver._perform(effect)
        try:
            if isinstance(effect, Read):
                return next(self._chunks, None) if self._chunks is not None else None
            return self._open(effect)
        except httpx.HTTPError as error:
            raise self._driver.reach.failure(error) from error

    def _open(self, effect: Open) -> Reply:
        self.close()
        http = self._driver._http
        arguments = self._driver._arguments(effect.request)
        timeout = arguments.pop("timeout")
        response = http.send(http.build_request(timeout=timeout, **arguments), stream=True)
        self._driver.reach.met()
        self._response = response
        if response.is_success:
            self._chunks = _generator(response.iter_raw())
            return Reply(response.status_code, response.headers)
        return Reply(response.status_code, response.headers, response.read())

    def close(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            response.close()


def _generator(chunks: Iterable[bytes]) -> Generator[bytes, None, None]:
    yield from chunks


class AsyncDriver(_Driver):
    """Performs effects on asyncio's event loop."""

    def __init__(
        self,
        location: Location,
        timeout: float,
        policy: RetryPolicy,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        super().__init__(location, timeout, policy)
        self._http = httpx.AsyncClient(transport=transport, **self._options)

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, request: Request) -> Reply:
        return await self.run(call(self.patience, request))

    async def ask(self, request: Request, model: type[T]) -> T:
        return await self.run(ask(self.patience, request, model))

    async def run(self, op: Op[T]) -> T:
        try:
            effect = next(op)
            while True:
                try:
                    answer = await self._perform(effect)
                except SandbankError as error:
                    effect = op.throw(error)
                else:
                    effect = op.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if not isinstance(effect, Send):
            raise TypeError("streams are iterated, not run")
        body = _WholeBody(effect.request)
        try:
            async with self._http.stream(**self._arguments(effect.request)) as response:
                self.reach.met()
                async for chunk in response.aiter_bytes():
                    body.add(chunk)
        except httpx.HTTPError as error:
            raise self.reach.failure(error) from error
        return Reply(response.status_code, response.headers, bytes(body.data))

    async def iterate(self, feed: Feed[T]) -> AsyncGenerator[T, None]:
        body = _AsyncBody(self)
        try:
            effect = next(feed)
            while True:
                if isinstance(effect, Emit):
                    yield effect.item
                    effect = feed.send(None)
                    continue
                try:
                    answer = await body.perform(effect)
                except SandbankError as error:
                    effect = feed.throw(error)
                else:
                    effect = feed.send(answer)
        except StopIteration:
            return
        finally:
            await body.close()


class _AsyncBody:
    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def perform(self, effect: Effect) -> Any:
        if isinstance(effect, (Send, Sleep)):
            await self.close()
            return await self._driver._perform(effect)
        try:
            if isinstance(effect, Read):
                return await self._read()
            return await self._open(effect)
        except httpx.HTTPError as error:
            raise self._driver.reach.failure(error) from error

    async def _read(self) -> bytes | None:
        if self._chunks is None:
            return None
        try:
            return await self._chunks.__anext__()
        except StopAsyncIteration:
            return None

    async def _open(self, effect: Open) -> Reply:
        await self.close()
        http = self._driver._http
        arguments = self._driver._arguments(effect.request)
        timeout = arguments.pop("timeout")
        response = await http.send(http.build_request(timeout=timeout, **arguments), stream=True)
        self._driver.reach.met()
        self._response = response
        if response.is_success:
            self._chunks = _async_iterator(response.aiter_raw())
            return Reply(response.status_code, response.headers)
        return Reply(response.status_code, response.headers, await response.aread())

    async def close(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()


def _async_iterator(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    return chunks.__aiter__()
