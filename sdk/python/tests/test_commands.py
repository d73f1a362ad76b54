"""Commands, shells and terminals."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sandbank import (
    BadRequest,
    Command,
    CommandFailed,
    Conflict,
    Gone,
    NotFound,
    OutputEvent,
    Sandbank,
    Sandbox,
    Timeout,
)
from sandbank.effects import Patience, Request, ask


def test_run_tells_output_and_exit_code(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert sorted(result.output) == sorted("out\nerr\n")
    assert (result.ending.kind, result.ending.code, result.ok) == ("exited", 3, False)
    assert result.ending.describe() == "exited with 3"


def test_a_list_is_passed_as_it_is(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(["printf", "%s|", "$HOME", "a b"]).stdout == "$HOME|a b|"


def test_directory_and_environment(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("deep/er")
    result = sandbox.commands.run("pwd; echo $WORD", cwd="deep/er", env={"WORD": "hé"})
    assert result.stdout.endswith("deep/er\nhé\n")


def test_check_raises_with_the_result(sandbox: Sandbox) -> None:
    with pytest.raises(CommandFailed, match="exited with 4: no such luck") as failed:
        sandbox.commands.run("echo no such luck >&2; exit 4", check=True)
    assert failed.value.result.exit_code == 4
    assert sandbox.commands.run("true", check=True).ok


def test_a_timeout_ends_the_command(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo begun; sleep 1000", timeout=0.3)
    assert (result.stdout, result.exit_code, result.ending.kind) == ("begun\n", 124, "timed_out")
    with pytest.raises(BadRequest) as bad:
        sandbox.commands.run("true", timeout=0)
    assert bad.value.code == "bad_timeout"


def test_input_of_every_kind(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(["cat"], stdin="tëxt").stdout == "tëxt"
    assert sandbox.commands.run(["cat"], stdin=b"\xff\0").stdout_bytes == b"\xff\0"
    assert sandbox.commands.run(["cat"], stdin=(b"%d" % n for n in range(5))).stdout == "01234"
    assert sandbox.commands.run(["cat"], stdin=b"").stdout == ""


def test_input_and_output_larger_than_any_buffer_do_not_block_each_other(
    sandbox: Sandbox,
) -> None:
    data = bytes(range(256)) * 80_000
    assert sandbox.commands.run(["cat"], stdin=data).stdout_bytes == data


def test_a_command_that_wants_no_more_input_is_no_error(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(["head", "-c", "3"], stdin=b"x" * 5_000_000).stdout == "xxx"


def test_an_input_that_fails_ends_the_command(sandbox: Sandbox) -> None:
    def broken() -> object:
        yield b"first"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        sandbox.commands.run(["cat"], stdin=broken())  # type: ignore[arg-type]
    assert sandbox.commands.list()[-1].state == "ended"


def test_a_run_that_is_interrupted_ends_its_command(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Command, after: int = 0) -> Iterator[OutputEvent]:
        yield next(stream(self, after))
        raise KeyboardInterrupt

    stream = Command.stream
    with monkeypatch.context() as patch:
        patch.setattr(Command, "stream", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sandbox.commands.run("echo begun; sleep 1000")
    (left,) = sandbox.commands.list()
    ending = sandbox.commands.get(left.command_id).wait(timeout=30).ending
    assert (ending.kind, ending.signal) == ("killed", 15)


def test_input_that_ends_the_command_was_taken(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = sandbox.commands.start("head -c 3 > taken", stdin=True)

    def late(patience: Patience, request: Request, model: Any) -> Any:
        reply = yield from ask(patience, request, model)
        if request.method == "POST":
            # As when the answer was lost, and the command has ended when it is asked again.
            raise Gone("it wants no more", code="closed")
        return reply

    with monkeypatch.context() as patch:
        patch.setattr("sandbank.stdin.ask", late)
        command.write("abc")
    assert command.wait(timeout=30).ok
    with pytest.raises(Gone):
        command.write("more")
    assert sandbox.files.read("taken") == b"abc"


def test_a_started_command_is_written_to_and_waited_for(sandbox: Sandbox) -> None:
    command = sandbox.commands.start(["cat"], stdin=True)
    command.write("one ")
    sandbox.commands.get(command.id).write(b"two")
    with pytest.raises(Timeout):
        command.wait(timeout=0.2)
    assert command.status().state == "running"
    again = sandbox.commands.get(command.id)
    again.close_stdin()
    result = again.wait(timeout=30)
    assert (result.stdout, result.exit_code) == ("one two", 0)
    with pytest.raises(Gone):
        again.write("late")


def test_two_writers_are_told_about_each_other(sandbox: Sandbox) -> None:
    command = sandbox.commands.start(["cat"], stdin=True)
    command.write("a")
    sandbox.commands.get(command.id).write("much longer")
    with pytest.raises(Conflict) as shared:
        command.write("b")
    assert shared.value.code == "stdin_shared"
    command.kill()


def test_a_command_that_does_not_read_yet_is_waited_for(
    server: tuple[str, str], sandbox: Sandbox
) -> None:
    data = bytes(range(256)) * 8_000
    with Sandbank(*server, timeout=0.5) as hasty:
        slow = hasty.sandboxes.get(sandbox.id).commands
        slow.run(
            "while [ ! -e go ]; do sleep 0.1; done; cat > got", stdin=_releasing(sandbox, data)
        )
    assert sandbox.files.read("got") == data


def _releasing(sandbox: Sandbox, data: bytes) -> Iterator[bytes]:
    """Lets the command read when the first write has long run into its timeout."""
    timer = threading.Timer(2.5, lambda: sandbox.files.write("go", b""))
    timer.start()
    yield data


def test_ones_own_id_attaches_instead_of_running_twice(sandbox: Sandbox) -> None:
    for _ in range(2):
        sandbox.commands.start("echo x >> ran", id="mine").wait()
    assert sandbox.files.read_text("ran") == "x\n"
    with pytest.raises(Conflict):
        sandbox.commands.start("something else", id="mine")


def test_commands_are_killed_and_signalled(sandbox: Sandbox) -> None:
    asked = sandbox.commands.start("sleep 1000")
    asked.kill()
    assert (asked.wait().exit_code, asked.wait().ending.kind) == (143, "killed")
    asked.kill()
    forced = sandbox.commands.start("trap '' TERM; sleep 1000")
    forced.signal("KILL", tree=True)
    assert forced.wait().exit_code == 137
    with pytest.raises(BadRequest):
        forced.signal("NONSENSE")


def test_commands_are_found_again(sandbox: Sandbox) -> None:
    command = sandbox.commands.start(["true"])
    command.wait()
    assert [one.command_id for one in sandbox.commands.list()] == [command.id]
    assert sandbox.commands.get(command.id).status().argv == ("true",)
    with pytest.raises(NotFound):
        sandbox.commands.get("nothing")


def test_a_shell_remembers(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    first = shell.run("cd /tmp; x=1; echo err >&2; false")
    assert (first.exit_code, first.stderr, first.cwd, first.restarted) == (
        1,
        "err\n",
        "/tmp",
        False,
    )
    second = sandbox.shell("main").run("echo $x; pwd")
    assert second.stdout == "1\n/tmp\n"
    assert sandbox.shell("other").run("echo [$x]").stdout == "[]\n"
    with pytest.raises(CommandFailed):
        shell.run("false", check=True)


def test_a_shell_takes_input_merges_streams_and_comes_back(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    assert shell.run("read line; echo got $line", stdin="it\n").stdout == "got it\n"
    merged = shell.run("echo 1; echo 2 >&2; echo 3", merged=True)
    assert (merged.stdout, merged.output, merged.stderr) == ("1\n2\n3\n", "1\n2\n3\n", "")
    assert shell.run("sleep 1000", timeout=0.3).ending.kind == "timed_out"
    shell.run("cd /tmp")
    shell.run("exit 0")
    again = shell.run("pwd")
    assert (again.stdout, again.restarted) == ("/tmp\n", True)
    streamed = list(shell.stream("echo a; echo b >&2"))
    assert [event.type for event in streamed][-1] == "ending"
    assert {event.text for event in streamed} == {"a\n", "b\n", ""}
    fed = shell.stream("read line; echo got $line", stdin="it\n")
    assert "".join(event.text for event in fed) == "got it\n"


def test_a_terminal_is_typed_into_left_and_found_again(sandbox: Sandbox) -> None:
    terminal = sandbox.terminal("bash", rows=30, cols=100)
    terminal.write("stty size; echo rea''dy\r")
    shown = b""
    for data in terminal:
        shown += data
        if b"ready" in shown:
            terminal.detach()
    assert b"30 100" in shown
    seq = terminal.seq
    terminal.resize(40, 120)
    again = sandbox.terminal.attach(terminal.id)
    again.write("stty size; exit 5\r")
    rest = b"".join(again)
    assert rest.startswith(shown), "the past comes first"
    assert b"40 120" in rest
    assert shown + b"".join(terminal) == rest, "who left goes on where they were"
    late = sandbox.terminal.attach(terminal.id, after=seq)
    assert shown + b"".join(late) == rest, "and so does who was told the place"
    assert again.wait().exit_code == 5


def test_a_terminal_is_killed(sandbox: Sandbox) -> None:
    terminal = sandbox.terminal(["sleep", "1000"])
    terminal.kill()
    assert terminal.wait().exit_code == 137
