"""Anthropic's messages: reading a request, and writing a reply as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conversation import Asked, Reply, require


def read(body: dict[str, Any]) -> Asked:
    require(isinstance(body.get("max_tokens"), int), "max_tokens is missing")
    require(body.get("stream"), "this model only streams")
    calls, results, prompt = [], {}, ""
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text" and message["role"] == "user":
                prompt += block["text"]
            elif block["type"] == "tool_use":
                calls.append((block["id"], block["name"], block["input"]))
            elif block["type"] == "tool_result":
                require(
                    block["tool_use_id"] not in results, f"two results of {block['tool_use_id']}"
                )
                results[block["tool_use_id"]] = _text(block["content"])
    tools = frozenset(tool["name"] for tool in body.get("tools") or [])
    return Asked(body["model"], True, tools, prompt, tuple(calls), results)


def _text(content: Any) -> str:
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def events(model: str, reply: Reply) -> Iterator[str]:
    """In small pieces: clients must put words and arguments together themselves."""
    yield _event("message_start", message=_message(model))
    yield from _block(0, {"type": "text", "text": ""}, "text_delta", "text", reply.text)
    for index, (call_id, call) in enumerate(reply.calls, start=1):
        start = _use(call_id, call.tool, {})
        yield from _block(
            index, start, "input_json_delta", "partial_json", json.dumps(call.arguments)
        )
    delta = {"stop_reason": _reason(reply), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={"output_tokens": 1})
    yield _event("message_stop")


def _block(index: int, start: dict[str, Any], kind: str, field: str, text: str) -> Iterator[str]:
    yield _event("content_block_start", index=index, content_block=start)
    for at in range(0, len(text), 7):
        yield _event(
            "content_block_delta", index=index, delta={"type": kind, field: text[at : at + 7]}
        )
    yield _event("content_block_stop", index=index)


def _use(call_id: str, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def _message(model: str) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    empty = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model} | empty


def _reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n"
