"""Where the server is, and the token for it.

As the command line does it: the server that holds the data directory of this machine wrote its
address there itself. Only to that address is the token of the data directory ever sent.
"""

from __future__ import annotations

import ipaddress
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from .errors import SandbankError

DEFAULT_URL = "http://127.0.0.1:8080"

#: Longer than any token.
_TOKEN_BYTES = 4096


@dataclass(frozen=True)
class Location:
    url: str
    #: Never shown: it would end up in logs.
    token: str | None = field(default=None, repr=False)


def locate(url: str | None, token: str | None) -> Location:
    """What was given, else the environment, else the server of this machine.

    Where there is no token it goes on without one.
    """
    url = url or os.environ.get("SANDBANK_URL", "").strip() or None
    token = token or os.environ.get("SANDBANK_TOKEN", "").strip() or None
    if url is not None and token is not None:
        return Location(url, token)
    announced = _announced(_data_dir())
    chosen = url or announced or DEFAULT_URL
    if token is None and announced and _is_announced(chosen, announced):
        found = _token_file(_data_dir() / "token")
        if found:
            # By the address itself: a name may mean something else to the next resolver.
            return Location(announced, found)
    return Location(chosen, token)


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_announced(url: str, announced: str) -> bool:
    """The same address and port, on this machine.

    `localhost` will do because it is not dialled by that name.
    """
    try:
        named, said = urlsplit(url), urlsplit(announced)
        same = (named.scheme, _port(named)) == (said.scheme, _port(said))
    except ValueError:
        return False
    if not is_loopback(announced) or said.hostname == "localhost":
        return False
    host = named.hostname in (said.hostname, "localhost")
    return same and host and named.path in ("", "/") and not named.query


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


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


def _token_file(path: Path) -> str | None:
    """None where there is none to read.

    Refused where others could have read or written it, as the command line does.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(opened.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return None
        if facts.st_uid != os.geteuid():
            raise _unsafe(f"the token file {path} belongs to another user (uid {facts.st_uid})")
        if facts.st_mode & 0o077:
            raise _unsafe(f"the token file {path} can be read by others", f"run: chmod 600 {path}")
        return opened.read(_TOKEN_BYTES).decode("utf-8", "replace").strip() or None


def _unsafe(message: str, hint: str | None = None) -> SandbankError:
    return SandbankError(message, code="token_file_unsafe", hint=hint)
