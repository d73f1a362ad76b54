"""Where the server is, and the token for it.

As the command line does it: the server that holds the data directory of this machine wrote its
address there itself. Only to that address is the token of the data directory ever sent.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Location:
    url: str
    #: Never shown: it would end up in logs.
    token: str | None = field(default=None, repr=False)


def locate(url: str | None, token: str | None) -> Location:
    """What was given, else the environment, else the server of this machine."""
    url = url or os.environ.get("SANDBANK_URL", "").strip() or None
    token = token or os.environ.get("SANDBANK_TOKEN", "").strip() or None
    if url is not None and token is not None:
        return Location(url, token)
    announced = _announced(_data_dir())
    chosen = url or announced or DEFAULT_URL
    if token is None and announced and is_loopback(chosen) and _same(chosen, announced):
        token = _token_file(_data_dir())
    return Location(chosen, token)


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def _data_dir() -> Path:
    chosen = os.environ.get("SANDBANK_DATA_DIR")
    if chosen:
        return Path(chosen)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/sandbank")
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "sandbank"


def _announced(data_dir: Path) -> str | None:
    """The address in the lock file, if its writer still holds the lock."""
    try:
        import fcntl
    except ImportError:
        return None  # Not a machine that a server runs on.
    try:
        with open(data_dir / "lock", "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = lock.read(256).decode("utf-8", "replace").strip()
                return text if text.startswith("http://") else None
            return None
    except OSError:
        return None


def _token_file(data_dir: Path) -> str | None:
    try:
        return (data_dir / "token").read_text().strip() or None
    except OSError:
        return None
