"""Isolated Linux sandboxes, from Python.

>>> from sandbank import Sandbank
>>> with Sandbank() as client, client.sandboxes.create() as sandbox:
...     print(sandbox.commands.run("echo hello").stdout)
"""

from importlib.metadata import version as _version

from .client import AsyncImages, AsyncSandbank, Images, Sandbank
from .commands import AsyncCommand, AsyncCommands, Command, Commands
from .errors import (
    AtLimit,
    BadRequest,
    CommandFailed,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Gone,
    NotFound,
    SandbankError,
    Timeout,
    TooMany,
    Unauthorized,
    Unavailable,
)
from .files import AsyncFiles, Files
from .git import (
    AsyncGit,
    Git,
    GitBranch,
    GitBranches,
    GitCommit,
    GitDiff,
    GitEntry,
    GitHead,
    GitLog,
    GitPerson,
    GitShow,
    GitStatus,
)
from .models import (
    Capabilities,
    CommandStatus,
    Containment,
    ContainmentProbe,
    Control,
    Doctor,
    Ending,
    Event,
    FileEntry,
    FileStat,
    Health,
    Image,
    Limits,
    Listing,
    PortList,
    PostMortem,
    Published,
    RunnerStats,
    SandboxInfo,
    ShellStatus,
    Stats,
)
from .notices import SandbankWarning
from .output import OutputEvent, Result
from .ports import AsyncPorts, Ports
from .retry import RetryPolicy
from .sandboxes import AsyncSandbox, AsyncSandboxes, Sandbox, Sandboxes
from .search import FoundLine, FoundName, NamesEnd, SkippedFiles, TextEnd, Tree, TreeEntry
from .shell import AsyncShell, Shell, ShellResult
from .terminal import AsyncTerminal, AsyncTerminals, Terminal, Terminals
from .watch import WatchEvent

__version__ = _version("sandbank")

__all__ = [
    "AsyncCommand",
    "AsyncCommands",
    "AsyncFiles",
    "AsyncGit",
    "AsyncImages",
    "AsyncPorts",
    "AsyncSandbank",
    "AsyncSandbox",
    "AsyncSandboxes",
    "AsyncShell",
    "AsyncTerminal",
    "AsyncTerminals",
    "AtLimit",
    "BadRequest",
    "Capabilities",
    "Command",
    "CommandFailed",
    "CommandStatus",
    "Commands",
    "Conflict",
    "ConnectionFailed",
    "Containment",
    "ContainmentProbe",
    "Control",
    "Doctor",
    "Ending",
    "Event",
    "FileEntry",
    "FileStat",
    "Files",
    "Forbidden",
    "FoundLine",
    "FoundName",
    "Git",
    "GitBranch",
    "GitBranches",
    "GitCommit",
    "GitDiff",
    "GitEntry",
    "GitHead",
    "GitLog",
    "GitPerson",
    "GitShow",
    "GitStatus",
    "Gone",
    "Health",
    "Image",
    "Images",
    "Limits",
    "Listing",
    "NamesEnd",
    "NotFound",
    "OutputEvent",
    "PortList",
    "Ports",
    "PostMortem",
    "Published",
    "Result",
    "RetryPolicy",
    "RunnerStats",
    "Sandbank",
    "SandbankError",
    "SandbankWarning",
    "Sandbox",
    "SandboxInfo",
    "Sandboxes",
    "Shell",
    "ShellResult",
    "ShellStatus",
    "SkippedFiles",
    "Stats",
    "Terminal",
    "Terminals",
    "TextEnd",
    "Timeout",
    "TooMany",
    "Tree",
    "TreeEntry",
    "Unauthorized",
    "Unavailable",
    "WatchEvent",
]
