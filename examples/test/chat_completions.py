"""OpenAI's chat completions: reading a request, and writing a reply whole or as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conversation import Asked, Reply, require


def read(body: dict[str, Any]) -> Asked:
    calls, results, prompt = [], {}, ""
    for message in body["messages"]:
        text = _text(message.get("content"))
        if message["role"] == "user":
            prompt += text
        for call in message.get("tool_calls") or []:
            function = call["function"]
            calls.append((call["id"], function["name"], json.loads(function["arguments"])))
        if message["role"] == "tool":
            require(
                message["tool_call_id"] not in results, f"two results of {message['tool_call_id']}"
            )
            results[message["tool_call_id"]] = text
    tools = frozenset(tool["function"]["name"] for tool in body.get("tools") or [])
    return Asked(body["model"], bool(body.get("stream")), tools, prompt, tuple(calls), results)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def whole(model: str, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [
            _call(call_id, call.tool, json.dumps(call.arguments)) for call_id, call in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _reason(reply), "logprobs": None}
    return _envelope(model, "chat.completion") | {"choices": [choice], "usage": _usage()}


def events(model: str, reply: Reply) -> Iterator[str]:
    """In small pieces: clients must put words and arguments together themselves."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _pieces(reply.text)]
    for index, (call_id, call) in enumerate(reply.calls):
        deltas.append({"tool_calls": [{"index": index} | _call(call_id, call.tool, "")]})
        for piece in _pieces(json.dumps(call.arguments)):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    chunk = _envelope(model, "chat.completion.chunk")
    for delta in deltas:
        yield _data(chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _data(chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": _reason(reply)}]})
    yield _data(chunk | {"choices": [], "usage": _usage()})
    yield "data: [DONE]\n\n"


def _call(call_id: str, tool: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}


def _envelope(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _pieces(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
