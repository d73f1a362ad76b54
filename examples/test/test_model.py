"""The scripted model is a judge, so it is judged first: it must believe what is true and refuse
what is not. Needs no sandbox."""

import unittest

import chat_completions
import messages
from conversation import Asked, Refusal, Reply, reply_to
from scripts import Call, Script

SCRIPT = Script(
    prompt="task",
    turns=(
        (Call("bash", {"script": "a"}, ("^one$",)),),
        (Call("bash", {"script": "b"}, ("two",)),),
    ),
    answer="done",
)
FIRST = ("call_0_0", "bash", {"script": "a"})
SECOND = ("call_1_0", "bash", {"script": "b"})


def asked(calls=(), results=None, tools=("bash",), prompt="the task"):
    return Asked("m", True, frozenset(tools), prompt, tuple(calls), results or {})


class ScriptedModel(unittest.TestCase):
    def test_it_plays_its_script_to_a_client_that_tells_the_truth(self):
        self.assertEqual(reply_to(SCRIPT, asked()).calls[0][0], "call_0_0")
        one = asked([FIRST], {"call_0_0": "one"})
        self.assertEqual(reply_to(SCRIPT, one).calls[0][0], "call_1_0")
        both = asked([FIRST, SECOND], {"call_0_0": "one", "call_1_0": "is two"})
        self.assertEqual(reply_to(SCRIPT, both), Reply("done", ()))

    def test_it_refuses_a_client_that_does_not(self):
        changed = ("call_0_0", "bash", {"script": "other"})
        for name, lie in {
            "another result": asked([FIRST], {"call_0_0": "ones"}),
            "no result": asked([FIRST]),
            "a result of another call": asked([FIRST], {"call_9_9": "one"}),
            "another call": asked([changed], {"call_0_0": "one"}),
            "a skipped call": asked([SECOND], {"call_1_0": "two"}),
            "no tools": asked(tools=()),
            "another task": asked(prompt="hello"),
        }.items():
            with self.subTest(name), self.assertRaises(Refusal):
                reply_to(SCRIPT, lie)

    def test_it_reads_both_protocols_alike(self):
        function = {"name": "bash", "arguments": '{"script": "a"}'}
        call = {"id": "call_0_0", "type": "function", "function": function}
        chat = {
            "model": "m",
            "stream": True,
            "tools": [{"type": "function", "function": {"name": "bash"}}],
            "messages": [
                {"role": "user", "content": "the task"},
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0_0", "content": "one"},
            ],
        }
        use = {"type": "tool_use", "id": "call_0_0", "name": "bash", "input": {"script": "a"}}
        result = {"type": "tool_result", "tool_use_id": "call_0_0", "content": "one"}
        message = {
            "model": "m",
            "stream": True,
            "max_tokens": 1,
            "tools": [{"type": "bash_20250124", "name": "bash"}],
            "messages": [
                {"role": "user", "content": "the task"},
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result]},
            ],
        }
        expected = asked([FIRST], {"call_0_0": "one"})
        self.assertEqual(chat_completions.read(chat), expected)
        self.assertEqual(messages.read(message), expected)


if __name__ == "__main__":
    unittest.main()
