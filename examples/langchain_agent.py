"""A LangChain agent that builds a web page in a Sandbank sandbox and shows it to you.

OPENAI_API_KEY=… python langchain_agent.py "Make a page with a haiku about sand."
"""

import os
import sys
import urllib.request

from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from sandbank import Sandbank, Sandbox

TASK = "Make a web page with a haiku about sand, and serve it."
PORT = 3000
PROMPT = f"""You have a Linux machine of your own. Serve what you make on port {PORT}, with a server
that runs in the background, and publish that port when it answers."""


def tools_for(sandbox: Sandbox) -> list[BaseTool]:
    # One shell for the whole conversation: what a script changes is there for the next.
    shell = sandbox.shell()

    @tool
    def bash(script: str) -> str:
        """Run a bash script. Directory, variables and background jobs are kept for the next one."""
        print(f"$ {script}")
        result = shell.run(script, merged=True, timeout=120)
        print(result.output, end="")
        return f"{result.output[-20_000:]}\n[it {result.ending.describe()}; now in {result.cwd}]"

    @tool
    def publish() -> str:
        """Get the URL under which people reach the server on your port."""
        return sandbox.url(PORT)

    return [bash, publish]


def main() -> None:
    with Sandbank() as client, client.sandboxes.create(ports=[PORT]) as sandbox:
        print(f"sandbox {sandbox.id}")
        model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
        agent = create_agent(model, tools_for(sandbox), system_prompt=PROMPT)
        task = sys.argv[1] if len(sys.argv) > 1 else TASK
        answer = agent.invoke({"messages": [{"role": "user", "content": task}]})
        print(answer["messages"][-1].text)
        with urllib.request.urlopen(sandbox.url(PORT)) as page:
            print(page.read().decode())
        if sys.stdin.isatty():
            input("Look at it in a browser; Enter deletes the sandbox. ")


if __name__ == "__main__":
    main()
