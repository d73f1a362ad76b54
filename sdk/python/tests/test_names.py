"""The table of both clients, `sdk/README.md`, names nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sandbank import (
    AsyncCommand,
    AsyncSandbank,
    AsyncSandbox,
    AsyncTerminal,
    Command,
    Ending,
    Result,
    Sandbank,
    Sandbox,
    ShellResult,
    Terminal,
)
from sandbank.sessions import SandboxClient, Session, SessionInfo

TABLE = (Path(__file__).parent.parent.parent / "README.md").read_text()
ROWS = re.findall(r"^\| (`.*?) \| `.*?\|.*\|$", TABLE, re.MULTILINE)
NAMES = [name for cell in ROWS for name in re.findall(r"`([^`]+)`", cell)]


def things() -> list[dict[str, Any]]:
    """One of each that a name can begin with, of the synchronous and the asynchronous client."""
    client, other = Sandbank("http://x", "t"), AsyncSandbank("http://x", "t")
    sandbox, async_sandbox = Sandbox(client._io, "s"), AsyncSandbox(other._io, "s")
    command, async_command = Command(client._io, "/s", "c"), AsyncCommand(other._io, "/s", "c")
    ending = Ending("exited", 0)
    result = Result("c", 0, ending, ())
    info = SessionInfo("s", "base", "running", "/", "", "")
    both: dict[str, Any] = {
        "result": result,
        "shell_result": ShellResult("c", 0, ending, ()),
        "ending": ending,
        "sessions": SandboxClient("http://x", "t"),
        "session": Session(other._io, info),
    }
    return [
        {"client": client, "sandbox": sandbox, "command": command, "shell": sandbox.shell(),
         "terminal": Terminal(command), **both},
        {"client": other, "sandbox": async_sandbox, "command": async_command,
         "shell": async_sandbox.shell(), "terminal": AsyncTerminal(async_command), **both},
    ]  # fmt: skip


def test_the_table_is_read() -> None:
    assert len(ROWS) > 30
    assert {"client.health", "sandbox.commands.run", "session.exec_stream"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_table_exists(name: str) -> None:
    for roots in things():
        first, *rest = name.split(".")
        found = roots[first]
        for part in rest:
            assert hasattr(found, part), f"{type(found).__name__} has no {part}"
            found = getattr(found, part)
