"""A model that plays a script: OpenAI's chat completions and Anthropic's messages on loopback.

The name of the model in a request chooses the script. A client that tells what the sandbox cannot
have said is answered 400, and the script has failed for good. `GET /verdict/<script>` is 200 with
the script's last answer when it was played to its end, else 409 with the reason.

    python3 model.py <file to write the URL into>
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import chat_completions
import messages
from conversation import Refusal, reply_to, require
from scripts import scripts

PROTOCOLS = {"/v1/chat/completions": chat_completions, "/v1/messages": messages}
KEY = "scripted-key"


class Model(BaseHTTPRequestHandler):
    """Handles one request. What became of each script is kept in the class."""

    scripts = scripts()
    verdicts: dict[str, str | None] = {}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = str(body.get("model"))
        try:
            protocol = PROTOCOLS.get(self.path.partition("?")[0])
            require(protocol, f"no such protocol: {self.path}")
            require(name in self.scripts, f"no such script: {name}")
            keys = {self.headers.get("authorization"), self.headers.get("x-api-key")}
            require(keys & {KEY, f"Bearer {KEY}"}, "the API key is not the one of the environment")
            asked = protocol.read(body)
            reply = reply_to(self.scripts[name], asked)
        except Exception as error:  # Whatever a client got wrong must be told, and fail the script.
            complaint = str(error) if isinstance(error, Refusal) else f"cannot read this: {error!r}"
            self.verdicts[name] = complaint
            self._send(
                400,
                "application/json",
                json.dumps({"error": {"type": "invalid_request_error", "message": complaint}}),
            )
            return
        if not reply.calls:
            self.verdicts.setdefault(name, None)
        if asked.stream:
            self._send(200, "text/event-stream", "".join(protocol.events(name, reply)))
        else:
            self._send(200, "application/json", json.dumps(protocol.whole(name, reply)))

    def do_GET(self) -> None:
        name = self.path.removeprefix("/verdict/")
        complaint = self.verdicts.get(name, "it was not played to its end")
        if complaint is None:
            self._send(200, "text/plain", self.scripts[name].answer)
        else:
            self._send(409, "text/plain", f"{name}: {complaint}\n")

    def _send(self, status: int, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """The verdict says all there is to say."""


def main(announce: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    with open(f"{announce}.new", "w") as file:
        file.write(f"http://127.0.0.1:{server.server_port}")
    os.rename(f"{announce}.new", announce)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
