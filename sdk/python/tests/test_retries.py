"""What is sent again, and what never is."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from cutting_proxy import STUBBORN, Cuts, CuttingProxy
from own_server import OwnServer

from sandbank import (
    AtLimit,
    Conflict,
    ConnectionFailed,
    RetryPolicy,
    Sandbank,
    SandbankError,
    Sandbox,
    Timeout,
    TooMany,
    Unavailable,
)

Cutting = Callable[[Cuts], CuttingProxy]
BLOB = random.Random(4).randbytes(3_000_000)


def error(status: int, *, retryable: bool = True, after: float | None = None) -> SandbankError:
    return Unavailable("busy", status=status, retryable=retryable, retry_after=after)


def test_pauses_double_up_to_a_bound_and_end() -> None:
    policy = RetryPolicy(attempts=6, first_pause=1.0, longest_pause=4.0)
    for failures, most in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 4.0), (5, 4.0)]:
        for _ in range(50):
            pause = policy.pause(failures, ConnectionFailed("cut"))
            assert pause is not None
            assert most / 2 <= pause <= most
    assert policy.pause(6, ConnectionFailed("cut")) is None


def test_only_failures_that_pass_are_waited_for() -> None:
    policy = RetryPolicy()
    assert policy.pause(1, error(503)) is not None
    assert policy.pause(1, error(429)) is not None
    assert policy.pause(1, error(503, retryable=False)) is None
    for status in (400, 404, 409, 500, 502, 504):
        assert policy.pause(1, error(status)) is None, status


def test_the_server_says_how_long_to_wait_within_reason() -> None:
    policy = RetryPolicy(longest_retry_after=10)
    pause = policy.pause(1, error(429, after=7))
    assert pause is not None
    assert pause >= 7
    assert policy.pause(1, error(429, after=11)) is None


def test_everybody_is_as_patient_as_the_other_client() -> None:
    policy = RetryPolicy()
    assert (policy.attempts, policy.first_pause) == (8, 0.1)
    assert (policy.longest_pause, policy.longest_retry_after) == (5.0, 30.0)


def test_one_deadline_bounds_all_tries() -> None:
    asked: list[float] = []

    def busy(request: httpx.Request) -> httpx.Response:
        asked.append(request.extensions["timeout"]["read"])
        body = {"error": "busy", "code": "busy", "retryable": True}
        return httpx.Response(503, headers={"retry-after": "0"}, json=body)

    policy = RetryPolicy(attempts=100, first_pause=0.2)
    transport = httpx.MockTransport(busy)
    client = Sandbank("http://x", "t", timeout=1.0, retry=policy, transport=transport)
    with client, pytest.raises(Unavailable):
        client.health()
    assert 1 < len(asked) < 10, "a pause that is longer than what is left is not begun"
    assert asked == sorted(asked, reverse=True), "each try has only what is left"


def test_a_server_that_trickles_is_late() -> None:
    def trickle() -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b" "

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=trickle()))
    client = Sandbank("http://x", "t", timeout=0.3, transport=transport)
    with client, pytest.raises(Timeout):
        client.health()


def test_an_answer_that_is_no_json_is_an_error_at_once() -> None:
    asked: list[str] = []

    def stranger(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(302 if len(asked) > 1 else 200, content=b"<html>")

    with Sandbank("http://x", "t", transport=httpx.MockTransport(stranger)) as client:
        for code in ("bad_answer", "redirected"):
            with pytest.raises(SandbankError) as told:
                client.health()
            assert (told.value.code, told.value.retryable) == (code, False)
    assert len(asked) == 2


def test_a_start_whose_answer_is_lost_runs_once(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    # The answer to a start is some 300 bytes: about every second one gets through.
    proxy = cutting(Cuts(20, 2000))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        through = shaky.sandboxes.get(sandbox.id)
        for number in range(20):
            through.commands.start(f"echo {number} >> ran").wait()
    assert proxy.cut > 5
    ran = sandbox.files.read_text("ran").split()
    assert ran == [str(number) for number in range(20)]


def test_a_create_whose_answer_is_lost_makes_one_sandbox(
    server: tuple[str, str], client: Sandbank, cutting: Cutting
) -> None:
    proxy = cutting(Cuts(10, 20, limit=3))
    before = {sandbox.id for sandbox in client.sandboxes.list()}
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        made = shaky.sandboxes.create(network="none")
    after = {sandbox.id for sandbox in client.sandboxes.list()}
    client.sandboxes.get(made.id).stop()
    assert proxy.cut >= 3
    assert after - before == {made.id}


def test_input_arrives_exactly_once_however_often_it_is_sent(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    proxy = cutting(Cuts(2_000, 1_000_000, both_ways=True))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        through = shaky.sandboxes.get(sandbox.id)
        through.commands.run("cat > got", stdin=io.BytesIO(BLOB), check=True)
    assert proxy.cut > 5
    assert sandbox.files.read("got") == BLOB


def test_a_download_goes_on_from_the_byte_it_reached(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    sandbox.files.write("blob", BLOB)
    proxy = cutting(Cuts(1_000, 300_000))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        assert shaky.sandboxes.get(sandbox.id).files.read("blob") == BLOB
    assert proxy.cut > 5


def test_a_file_that_changes_in_the_middle_of_a_download_is_an_error(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    sandbox.files.write("blob", BLOB)
    proxy = cutting(Cuts(100_000, 100_000))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
        stream = shaky.sandboxes.get(sandbox.id).files.stream("blob")
        assert BLOB.startswith(next(stream))
        sandbox.files.write("blob", BLOB[::-1][:-1])
        with pytest.raises(Conflict) as raised:
            list(stream)
    assert raised.value.code == "file_changed"


def test_what_may_not_be_repeated_is_sent_once(
    server: tuple[str, str], sandbox: Sandbox, cutting: Cutting
) -> None:
    def through(call: Callable[[Sandbox], object]) -> int:
        # The sandbox is looked up over the first connection, which is let go of then.
        proxy = cutting(Cuts(1, 1))
        with Sandbank(proxy.url, server[1], retry=STUBBORN) as shaky:
            known = Sandbox(shaky._io, sandbox.id)
            with pytest.raises(ConnectionFailed):
                call(known)
        return proxy.connections

    assert through(lambda one: one.files.write("once", b"x")) == 1
    assert through(lambda one: one.files.mkdir("d")) == 1
    assert through(lambda one: one.files.move("a", "b")) == 1
    assert through(lambda one: one.files.remove("once")) == 1
    assert through(lambda one: one.pause()) == 1
    assert through(lambda one: one.stop()) == 1
    assert through(lambda one: one.containment()) == 1
    assert through(lambda one: one.stats()) > 100, "what only looks is repeated"


def test_too_many_requests_are_waited_for_when_that_is_safe(
    own_server: Callable[..., OwnServer],
) -> None:
    limited = own_server(
        SANDBANK_REQUESTS_PER_SECOND="2", SANDBANK_REQUEST_BURST="2", SANDBANK_MAX_SANDBOXES="1"
    )
    once = RetryPolicy(attempts=1)
    with Sandbank(limited.url, limited.token, retry=once) as hasty, pytest.raises(TooMany) as told:
        for _ in range(20):
            hasty.images.list()
    assert told.value.retry_after == 1
    assert told.value.retryable
    with Sandbank(limited.url, limited.token) as patient:
        for _ in range(5):
            assert patient.images.list()
        with patient.sandboxes.create(network="none") as sandbox:
            sandbox.commands.start("sleep 1000")
            impatient = Sandbank(limited.url, limited.token, retry=RetryPolicy(attempts=3))
            with pytest.raises(AtLimit) as full:
                for _ in range(5):
                    impatient.sandboxes.create(network="none")
            assert full.value.code == "at_limit"
            assert full.value.retry_after
