"""A conversation as the scripted model sees it, whatever protocol it came in."""

from __future__ import annotations

from dataclasses import dataclass

from scripts import Call, Script


class Refusal(Exception):
    """The client said what it cannot have seen, or does not speak the protocol."""


def require(holds: object, complaint: str) -> None:
    if not holds:
        raise Refusal(complaint)


@dataclass(frozen=True)
class Asked:
    """A request: the whole conversation up to here. Results are by the id of their call."""

    model: str
    stream: bool
    tools: frozenset[str]
    prompt: str
    calls: tuple[tuple[str, str, dict[str, object]], ...]
    results: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """Calls with their ids, or else the last answer."""

    text: str
    calls: tuple[tuple[str, Call], ...]


def reply_to(script: Script, asked: Asked) -> Reply:
    """The next turn, once everything before it is exactly as it must be."""
    used = {call.tool for turn in script.turns for call in turn}
    require(
        used <= asked.tools, f"offers {sorted(asked.tools)}, without {sorted(used - asked.tools)}"
    )
    require(script.prompt in asked.prompt, f"does not ask for {script.prompt!r}: {asked.prompt!r}")

    numbered = [
        tuple((f"call_{n}_{i}", call) for i, call in enumerate(turn))
        for n, turn in enumerate(script.turns)
    ]
    done: list[tuple[str, Call]] = []
    for turn in numbered:
        if len(done) == len(asked.calls):
            break
        done.extend(turn)
    said = [(call_id, call.tool, call.arguments) for call_id, call in done]
    require(list(asked.calls) == said, f"tells {asked.calls} where the model had said {said}")
    require(
        asked.results.keys() == {call_id for call_id, _ in done},
        f"has results of {sorted(asked.results)} only",
    )
    for call_id, call in done:
        require(not (complaint := call.complaint(asked.results[call_id])), complaint or "")

    for turn in numbered:
        if turn[0] not in done:
            return Reply("Let me see.", turn)
    return Reply(script.answer, ())
