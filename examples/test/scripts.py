"""What the scripted model does in each example, and what it must be told in return.

Every script has a secret that only this process knows. The results that must come back are made
of it by programs in the sandbox, so an example that does not run them cannot guess them.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

WORKSPACE = "/vercel/sandbox/workspace"
HOST = r"\bsb[a-z0-9]{10,}\b"  # The host name of a sandbox is its id.


@dataclass(frozen=True)
class Call:
    """One use of a tool. `finds` are patterns of its result; `holds` looks closer at it."""

    tool: str
    arguments: dict[str, object]
    finds: tuple[str, ...]
    holds: Callable[[str], bool] = lambda result: True

    def complaint(self, result: str) -> str | None:
        """Why this cannot be what the sandbox said."""
        for pattern in self.finds:
            if not re.search(pattern, result):
                return f"{self.tool}({self.arguments}) must find {pattern!r} in {result!r}"
        if not self.holds(result):
            return f"{self.tool}({self.arguments}) does not hold what it says: {result!r}"
        return None


@dataclass(frozen=True)
class Script:
    """Turns of calls at the same time, and the answer after the last of them."""

    prompt: str
    turns: tuple[tuple[Call, ...], ...]
    answer: str


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _openai_agents(secret: str) -> Script:
    program = f"import hashlib\nprint(hashlib.sha256({secret!r}.encode()).hexdigest())\n"
    return Script(
        prompt="primes",
        turns=(
            (
                Call(
                    "write_file",
                    {"path": "work/digest.py", "content": program},
                    (str(len(program)),),
                ),
                Call("bash", {"script": "hostname"}, (HOST, "exited with 0")),
            ),
            (Call("read_file", {"path": "missing.txt"}, ("(?i)error", "missing.txt")),),
            (Call("bash", {"script": f"cd work; x={secret}"}, (f"{WORKSPACE}/work",)),),
            (
                Call(
                    "bash",
                    {"script": 'python3 digest.py | tee out.txt; test "$x"; echo >&2 $x$?; false'},
                    (_digest(secret), f"(?m)^{secret}0$", f"{WORKSPACE}/work", "exited with 1"),
                ),
            ),
            (Call("read_file", {"path": "work/out.txt"}, (f"^{_digest(secret)}\n$",)),),
        ),
        answer=f"The digest is {_digest(secret)}.",
    )


def _langchain_agent(secret: str) -> Script:
    def shows_the_page(url: str) -> bool:
        with urllib.request.urlopen(url, timeout=10) as page:
            return _digest(secret) in page.read().decode()

    serve = (
        "python3 -m http.server 3000 >/dev/null 2>&1 &\n"
        "until (: </dev/tcp/127.0.0.1/3000) 2>/dev/null; do sleep 0.1; done; pwd; jobs"
    )
    return Script(
        prompt="haiku",
        turns=(
            (
                Call(
                    "bash", {"script": "mkdir site; cd site; hostname"}, (HOST, f"{WORKSPACE}/site")
                ),
            ),
            (
                Call(
                    "bash",
                    {"script": f"printf %s {secret} | sha256sum >index.html; cat index.html"},
                    (_digest(secret), "exited with 0"),
                ),
            ),
            (Call("bash", {"script": serve}, (f"(?m)^{WORKSPACE}/site$", "http.server")),),
            (Call("publish", {}, (r"^http://127\.0\.0\.1:\d+",), shows_the_page),),
        ),
        answer=f"It is served, number {_digest(secret)[:12]}.",
    )


def _ai_sdk_bash_tool(secret: str) -> Script:
    program = f"print(sum(range(1, 101)), '{secret}'[::-1])\n"
    return Script(
        prompt="sum.py",
        turns=(
            (
                Call("readFile", {"path": "sum.py"}, (r"range\(1, 100\)",)),
                Call(
                    "bash",
                    {"command": "hostname; pwd; python3 sum.py"},
                    (HOST, "/workspace", "4950"),
                ),
            ),
            (Call("readFile", {"path": "missing.py"}, ("(?i)no such|not found|does not exist",)),),
            (Call("writeFile", {"path": "sum.py", "content": program}, ("success",)),),
            (
                Call(
                    "bash",
                    {"command": "python3 sum.py; echo oops >&2; exit 3"},
                    (f"5050 {secret[::-1]}", '"stderr": ?"oops', '"exitCode": ?3'),
                ),
            ),
        ),
        answer=f"It prints 5050 {secret[::-1]}.",
    )


def _ai_sdk_tools(secret: str) -> Script:
    def shows_the_page(result: str) -> bool:
        url = json.loads(result)["url"]
        with urllib.request.urlopen(url, timeout=10) as page:
            return _digest(secret) in page.read().decode()

    serve = (
        "cd site; sha256sum <secret >index.html\n"
        "python3 -m http.server 3000 >/dev/null 2>&1 &\n"
        "until (: </dev/tcp/127.0.0.1/3000) 2>/dev/null; do sleep 0.1; done; cat index.html"
    )
    return Script(
        prompt="page",
        turns=(
            (
                Call("bash", {"command": "hostname; pwd"}, (HOST, WORKSPACE, '"untrusted": ?true')),
                Call("writeFile", {"path": "site/secret", "content": secret}, ("success",)),
            ),
            (
                Call("readFile", {"path": "missing.py"}, ("(?i)missing.py|no such|not found",)),
                Call("bash", {"cmd": "true"}, ("command is missing",)),
            ),
            (Call("bash", {"command": serve}, (_digest(secret), '"exitCode": ?0')),),
            (
                Call(
                    "bash",
                    {"command": "for i in 1 2 3; do echo step $i; sleep 0.3; done; exit 3"},
                    (r"step 1\\nstep 2\\nstep 3\\n", '"exitCode": ?3'),
                ),
                Call(
                    "readFile",
                    {"path": "site/index.html"},
                    (_digest(secret), '"untrusted": ?true'),
                ),
            ),
            (Call("sandboxUrl", {"port": 3000}, (r"http://127\.0\.0\.1:\d+",), shows_the_page),),
        ),
        answer=f"It is served, number {_digest(secret)[:12]}.",
    )


def _claude_tools(secret: str) -> Script:
    return Script(
        prompt="calendar",
        turns=(
            (
                Call("bash", {"command": f"cd /tmp; x={secret}; hostname"}, (HOST, "exited with 0")),
                Call("bash", {"command": "pwd; echo $x"}, ("(?m)^/tmp$", f"(?m)^{secret}$")),
            ),
            (
                Call(
                    "bash",
                    {"command": "printf %s $x | sha256sum; exit 3"},
                    (_digest(secret), "exited with 3"),
                ),
            ),
            (Call("bash", {"restart": True}, ("shell",)),),
            (Call("bash", {"command": "pwd; echo [$x]"}, (f"(?m)^{WORKSPACE}$", r"\[\]")),),
        ),
        answer=f"It prints {_digest(secret)}.",
    )


def scripts() -> dict[str, Script]:
    """One for each example, by its name."""
    makers = {
        "openai_agents": _openai_agents,
        "langchain_agent": _langchain_agent,
        "ai_sdk_bash_tool": _ai_sdk_bash_tool,
        "ai_sdk_tools": _ai_sdk_tools,
        "claude_tools": _claude_tools,
    }
    return {name: make(secrets.token_hex(8)) for name, make in makers.items()}
