"""A TCP proxy on loopback that breaks connections: after a random number of bytes in either
direction, so also in the middle of a record, and now and then it refuses new ones for a while."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbank import RetryPolicy

#: Patient enough for connections that break more often than a record fits through.
STUBBORN = RetryPolicy(attempts=200, first_pause=0.01, longest_pause=0.05)

_RESET = struct.pack("ii", 1, 0)


#: More than any test sends.
NEVER = 1 << 40


@dataclass(frozen=True)
class Cuts:
    """How many bytes pass before a connection is cut; evenly spread over their magnitude."""

    least: int = NEVER
    most: int = NEVER
    #: Bytes from the client count, too.
    both_ways: bool = False
    #: After every so many cuts …
    refuse_every: int = 0
    #: … nobody listens for this long.
    refuse_seconds: float = 0.0
    #: Everything passes once so many connections were cut.
    limit: int | None = None


class CuttingProxy:
    def __init__(self, target: str, cuts: Cuts) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._cuts = cuts
        self.seed = int(os.environ.get("SANDBANK_SEED") or random.randrange(1 << 32))
        print(f"SANDBANK_SEED={self.seed}")
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()
        self._open = True
        self._down = threading.Event()
        self._passages: list[_Passage] = []
        self.connections = 0
        self.cut = 0
        #: Cuts after a byte that does not end a line.
        self.cut_inside = 0
        self.refused_times = 0
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._open = False
        self._listener.close()

    def go_down(self) -> None:
        """Cuts everything; whoever connects is cut, too, until `come_back`."""
        self._down.set()
        with self._lock:
            passages = list(self._passages)
        for passage in passages:
            passage.cut()

    def come_back(self) -> None:
        self._down.clear()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        listener.settimeout(0.05)
        return listener

    def _accept(self) -> None:
        refused_at = 0
        while self._open:
            every = self._cuts.refuse_every
            if every and self.cut >= refused_at + every:
                refused_at = self.cut
                self.refused_times += 1
                self._listener.close()
                time.sleep(self._cuts.refuse_seconds)
                self._listener = self._listen(self.port)
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        passage = _Passage(client, server, self._budget(), self)
        with self._lock:
            self._passages.append(passage)
        if self._down.is_set():
            passage.cut()
        up = threading.Thread(
            target=passage.pump, args=(client, server, self._cuts.both_ways), daemon=True
        )
        up.start()
        passage.pump(server, client, True)
        up.join()
        client.close()
        server.close()

    def _budget(self) -> int | None:
        with self._lock:
            if self._cuts.limit is not None and self.connections > self._cuts.limit:
                return None
            low, high = self._cuts.least, self._cuts.most
            return int(low * (high / low) ** self._random.random())

    def count(self, last_byte: bytes) -> None:
        with self._lock:
            self.cut += 1
            self.cut_inside += last_byte != b"\n"


class _Passage:
    """One connection and what may still pass."""

    def __init__(
        self, client: socket.socket, server: socket.socket, budget: int | None, proxy: CuttingProxy
    ) -> None:
        self._client, self._server, self._proxy = client, server, proxy
        self._left = budget
        self._lock = threading.Lock()
        self._was_cut = False

    def pump(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        try:
            while data := source.recv(65536):
                allowed, cut = self._allowed(data, counts)
                target.sendall(allowed)
                if cut:
                    self.cut(allowed[-1:])
                    return
            target.shutdown(socket.SHUT_WR)
        except OSError:
            self._end()

    def _allowed(self, data: bytes, counts: bool) -> tuple[bytes, bool]:
        with self._lock:
            if not counts or self._left is None:
                return data, False
            allowed = data[: self._left]
            self._left -= len(allowed)
            return allowed, self._left == 0

    def cut(self, last_byte: bytes = b"\n") -> None:
        with self._lock:
            if self._was_cut:
                return
            self._was_cut = True
        self._proxy.count(last_byte)
        if self._proxy.cut % 2:
            # As a router does that lost its tables; the other half are proper ends.
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._end()

    def _end(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
