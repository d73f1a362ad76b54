"""A server that a test may restart and kill, on a data directory of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from random import randrange

import httpx

START_SECONDS = 60.0

#: What says over which engine servers are; nothing else of this process's server is theirs.
ENGINE = ("SANDBANK_ENGINE", "SANDBOXD_DOCKER_SOCKET", "SANDBANK_DOCKER_IMAGE")

#: What sandboxes are made of where nobody says it.
USUAL_IMAGE = os.environ.get("SANDBANK_TEST_IMAGE", "host")

#: The command line's exit code where the server is busy, or its rate limit is reached.
TRY_LATER = 75


class OwnServer:
    def __init__(self, binary: str, directory: Path, settings: dict[str, str]) -> None:
        self.directory = directory
        self._binary = binary
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if "SANDB" not in name or name in ENGINE
            },
            "SANDBANK_DATA_DIR": str(directory / "data"),
            "SANDBANK_PORT": str(self._port),
            # Plain storage leaves nothing mounted behind.
            "SANDBANK_STORAGE": "plain",
            "SANDBANK_POOL_SIZE": "0",
            # Other servers on this machine have networks, too.
            "SANDBANK_NETWORK_SUBNET": f"10.{randrange(64, 208)}.{randrange(16) * 16}.0/20",
            **settings,
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def token(self) -> str:
        return (self.directory / "data" / "token").read_text().strip()

    def start(self) -> None:
        log = open(self.directory / "log", "ab")  # noqa: SIM115, the server's until it ends
        self._process = subprocess.Popen(
            [self._binary, "serve"], env=self._environment, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log,
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/v1/health", trust_env=False).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError(f"the server did not start:\n{(self.directory / 'log').read_text()}")

    def kill(self) -> None:
        """`kill -9`: nothing gets to tidy up."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        """Sandboxes outlive their server, so they go first."""
        assert self._process is not None
        if self._process.poll() is None:
            self._remove_sandboxes()
            self._process.terminate()
            self._process.wait(timeout=60)
        shutil.rmtree(self.directory)

    def _remove_sandboxes(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            command = [self._binary, "rm", "--all"]
            ran = subprocess.run(command, env=self._environment, capture_output=True, text=True)
            if ran.returncode == 0:
                return
            assert ran.returncode == TRY_LATER, ran.stderr
            assert time.monotonic() < deadline, ran.stderr
            time.sleep(0.5)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
