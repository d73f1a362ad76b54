"""A dropped stream goes on without losing or doubling a byte."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from cutting_proxy import STUBBORN, Cuts, CuttingProxy
from own_server import OwnServer

from sandbank import (
    AsyncSandbank,
    ConnectionFailed,
    OutputEvent,
    RetryPolicy,
    Sandbank,
    Sandbox,
    Timeout,
)

#: Together less than what the server keeps of a command that nobody reads.
STDOUT = random.Random(1).randbytes(3_000_000)
STDERR = random.Random(2).randbytes(1_500_000)

#: Both streams in small turns, as fast as it goes.
PRINT = """
i=0
while [ $i -lt 300 ]; do
    dd if=out bs=10000 count=1 skip=$i status=none
    dd if=err bs=5000 count=1 skip=$i status=none >&2
    i=$((i + 1))
done
exit 7
"""


@pytest.fixture
def printing(sandbox: Sandbox) -> list[str]:
    sandbox.files.write("out", STDOUT)
    sandbox.files.write("err", STDERR)
    return ["sh", "-c", PRINT]


def joined(events: list[OutputEvent], stream: str) -> bytes:
    return b"".join(event.data for event in events if event.stream == stream)


def assert_exact(events: list[OutputEvent]) -> None:
    assert joined(events, "stdout") == STDOUT
    assert joined(events, "stderr") == STDERR
    assert [event.exit_code for event in events if event.ending] == [7]
    assert events[-1].ending is not None
    assert not any(event.dropped_bytes for event in events)


Cutting = Callable[[Cuts], CuttingProxy]


def test_output_through_a_network_that_breaks_is_exact(
    server: tuple[str, str], sandbox: Sandbox, printing: list[str], cutting: Cutting
) -> None:
    proxy = cutting(Cuts(300, 400_000, refuse_every=10, refuse_seconds=0.3))
    command = sandbox.commands.start(printing)
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        through = shaky.sandboxes.get(sandbox.id).commands.get(command.id)
        events = list(through.stream())
    assert_exact(events)
    assert proxy.cut > 10, "the network did not break"
    assert proxy.cut_inside > 5, "no record was torn apart"
    assert proxy.refused_times > 0, "no connection was refused"


async def test_output_of_the_async_client_is_exact_too(
    server: tuple[str, str], sandbox: Sandbox, printing: list[str], cutting: Cutting
) -> None:
    proxy = cutting(Cuts(300, 400_000, refuse_every=10, refuse_seconds=0.3))
    command = sandbox.commands.start(printing)
    async with AsyncSandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        through = await (await shaky.sandboxes.get(sandbox.id)).commands.get(command.id)
        events = [event async for event in through]
    assert_exact(events)
    assert proxy.cut > 10
    assert proxy.cut_inside > 5


def test_run_is_exact_with_the_patience_that_everybody_has(
    server: tuple[str, str], sandbox: Sandbox, printing: list[str], cutting: Cutting
) -> None:
    proxy = cutting(Cuts(250_000, 2_000_000))
    with Sandbank(proxy.url, server[1]) as shaky:
        result = shaky.sandboxes.get(sandbox.id).commands.run(printing)
    assert (result.stdout_bytes, result.stderr_bytes) == (STDOUT, STDERR)
    assert (result.exit_code, result.dropped_bytes) == (7, 0)
    assert proxy.cut > 0


def test_who_leaves_a_stream_goes_on_behind_the_last_event(
    sandbox: Sandbox, printing: list[str]
) -> None:
    command = sandbox.commands.start(printing)
    events: list[OutputEvent] = []
    chance = random.Random(3)
    while not (events and events[-1].ending):
        for event in command.stream(after=events[-1].seq if events else 0):
            events.append(event)
            if chance.random() < 0.1:
                break
    assert_exact(events)


def test_a_network_that_never_comes_back_is_an_error_after_bounded_tries(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    command = sandbox.commands.start("sleep 1000")
    proxy = cutting(Cuts(1, 1))
    policy = RetryPolicy(attempts=4, first_pause=0.01)
    with Sandbank(proxy.url, server[1], retry=policy) as shaky:
        hopeless = shaky.sandboxes.list
        with pytest.raises(ConnectionFailed):
            hopeless()
        assert proxy.connections == 4
    command.kill()


def test_output_that_the_server_no_longer_has_is_counted_exactly(sandbox: Sandbox) -> None:
    started = sandbox.commands.start("head -c 50000000 /dev/zero")
    while started.status().state == "running":
        pass
    result = started.wait()
    assert result.dropped_bytes > 0
    assert len(result.stdout_bytes) + result.dropped_bytes == 50_000_000
    assert [event.type for event in result.events].count("dropped") == 1


def test_a_sandbox_that_ends_while_nobody_is_connected_leaves_a_lost_command(
    client: Sandbank, cutting: Cutting, server: tuple[str, str]
) -> None:
    doomed = client.sandboxes.create(network="none")
    command = doomed.commands.start("echo here; sleep 1000")
    proxy = cutting(Cuts())
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        stream = shaky.sandboxes.get(doomed.id).commands.get(command.id).stream()
        assert next(stream).data == b"here\n"
        proxy.go_down()
        doomed.stop()
        proxy.come_back()
        events = list(stream)
    assert [event.type for event in events] == ["ending"]
    assert events[0].ending is not None
    assert events[0].ending.kind == "lost"
    assert "stopped" in str(events[0].ending.reason)
    assert events[0].exit_code is None


def test_a_sandbox_that_ends_under_a_reader_leaves_a_lost_command(client: Sandbank) -> None:
    doomed = client.sandboxes.create(network="none")
    stream = doomed.commands.start("echo here; sleep 1000").stream()
    assert next(stream).data == b"here\n"
    doomed.stop()
    (event,) = stream
    assert event.ending is not None
    assert event.ending.kind == "lost"


def test_a_wait_has_one_deadline_however_often_it_is_cut(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    command = sandbox.commands.start("while :; do echo line; sleep 0.01; done")
    proxy = cutting(Cuts(2_000, 4_000))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        through = shaky.sandboxes.get(sandbox.id).commands.get(command.id)
        with pytest.raises(Timeout):
            through.wait(timeout=1.5)
    assert proxy.cut > 1
    assert command.status().state == "running"
    command.kill()


def test_an_archive_comes_whole_through_cuts(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    sandbox.files.write("packed/large", STDOUT)
    proxy = cutting(Cuts(300, 900_000))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        archive = b"".join(shaky.sandboxes.get(sandbox.id).files.download_archive("packed"))
    sandbox.files.upload_archive(archive, "unpacked")
    assert sandbox.files.read("unpacked/large") == STDOUT
    assert proxy.cut > 1
    assert [entry.name for entry in sandbox.files.list()] == ["packed", "unpacked"]


def test_events_have_no_gap_after_a_cut(
    client: Sandbank, cutting: Cutting, server: tuple[str, str]
) -> None:
    proxy = cutting(Cuts())
    with (
        Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky,
        client.sandboxes.create(network="none") as one,
    ):
        events = shaky.events()
        seen = [next(event.seq for event in events if event.sandbox_id == one.id)]
        proxy.go_down()
        with client.sandboxes.create(network="none") as other:
            pass
        proxy.come_back()
        for event in events:
            seen.append(event.seq)
            if event.sandbox_id == other.id and event.kind == "sandbox.stopped":
                break
    assert seen == list(range(seen[0], seen[-1] + 1))
    assert proxy.cut > 0


def test_a_server_that_is_killed_and_started_again_loses_no_output(
    own_server: Callable[..., OwnServer],
) -> None:
    server = own_server()
    with (
        Sandbank(server.url, server.token) as client,
        client.sandboxes.create(network="none") as sandbox,
    ):
        count = "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i + 1)); sleep 0.01; done"
        command = sandbox.commands.start(["sh", "-c", count])
        seen = b""
        for event in command:
            if not seen:
                server.kill()
                server.start()
            seen += event.data
        assert seen == b"".join(b"line %d\n" % number for number in range(300))
        assert command.wait().exit_code == 0
