"""An agent of the OpenAI Agents SDK that works in a Sandbank sandbox.

OPENAI_API_KEY=… python openai_agents.py "How many primes are below 10000?"
"""

import asyncio
import os
import sys

from agents import (
    Agent,
    RunContextWrapper,
    Runner,
    Tool,
    function_tool,
    set_default_openai_api,
    set_tracing_disabled,
)
from sandbank import AsyncSandbank, AsyncSandbox, SandbankError

TASK = "Write a Python program that counts the primes below 10000, run it, and tell me the number."


def explain(_: RunContextWrapper, error: Exception) -> str:
    """What the model is told when a tool fails: it can do better if it knows why."""
    return f"error: {error}" if isinstance(error, SandbankError) else "error: try again"


def tools_for(sandbox: AsyncSandbox) -> list[Tool]:
    # One shell for the whole conversation: what a script changes is there for the next.
    shell = sandbox.shell()

    @function_tool
    async def bash(script: str) -> str:
        """Run a bash script. Directory, variables and background jobs are kept for the next one."""
        print(f"$ {script}")
        result = await shell.run(script, merged=True, timeout=120)
        print(result.output, end="")
        return f"{result.output[-20_000:]}\n[it {result.ending.describe()}; now in {result.cwd}]"

    @function_tool(failure_error_function=explain)
    async def read_file(path: str) -> str:
        """Read a text file of the workspace."""
        print(f"reads {path}")
        return await sandbox.files.read_text(path)

    @function_tool(failure_error_function=explain)
    async def write_file(path: str, content: str) -> str:
        """Write a text file into the workspace, making missing directories."""
        print(f"writes {path}")
        written = await sandbox.files.write(path, content)
        return f"wrote {written.size} bytes to {path}"

    return [bash, read_file, write_file]


async def main() -> None:
    # Any server that speaks OpenAI's chat completions will do; nothing is reported to OpenAI.
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    async with AsyncSandbank() as client, await client.sandboxes.create() as sandbox:
        print(f"sandbox {sandbox.id}")
        agent = Agent(
            name="Engineer",
            instructions="You have a Linux machine of your own. Use it, and answer briefly.",
            model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
            tools=tools_for(sandbox),
        )
        result = await Runner.run(agent, sys.argv[1] if len(sys.argv) > 1 else TASK)
        print(result.final_output)


asyncio.run(main())
