"""Sandboxes, their ports, and the server as a whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import httpx
import pytest
from own_server import USUAL_IMAGE, OwnServer

from sandbank import (
    BadRequest,
    Conflict,
    ConnectionFailed,
    Event,
    Gone,
    NotFound,
    RetryPolicy,
    Sandbank,
    Sandbox,
    Unauthorized,
)
from sandbank.sessions import SandboxClient


def test_the_server_tells_about_itself(client: Sandbank) -> None:
    assert client.health().ok
    doctor = client.doctor()
    assert {control.standing for control in doctor.controls} <= {"in_force", "weaker", "missing"}
    assert doctor.capabilities.concurrent_creates > 0
    assert USUAL_IMAGE in [image.name for image in client.images.list()]


def test_a_sandbox_is_made_by_the_engine_that_is_named(client: Sandbank) -> None:
    engine = client.health().engine
    with client.sandboxes.create(engine=engine, network="none") as sandbox:
        assert sandbox.info().engine == engine
    with pytest.raises(BadRequest) as refused:
        client.sandboxes.create(engine="abacus")
    assert refused.value.code == "engine_not_configured"


def test_a_sandbox_has_what_it_was_given(client: Sandbank) -> None:
    with client.sandboxes.create(
        env={"WORD": "given"}, network="none", memory_mb=512, vcpus=1, pids=100, tmp_mb=20,
        ports=[3000, 4000], idle_ttl=120, max_lifetime=600, runtime="python3.13",
    ) as sandbox:  # fmt: skip
        assert sandbox.created
        assert sandbox.acquire_source in ("pool", "cold")
        info = sandbox.info()
        assert (info.state, info.network, info.ports) == ("running", "none", (3000, 4000))
        assert (info.limits.memory_bytes, info.limits.pids) == (512 << 20, 100)
        assert (info.limits.cpu_millis, info.limits.tmp_bytes) == (1000, 20 << 20)
        assert (info.idle_ttl_ms, info.runtime) == (120_000, "python3.13")
        assert info.ends_at_ms == pytest.approx(info.created_at_ms + 600_000, abs=5000)
        assert sandbox.commands.run("echo $WORD").stdout == "given\n"


def test_what_is_left_out_the_server_decides(client: Sandbank) -> None:
    with client.sandboxes.create(network="none") as sandbox:
        info = sandbox.info()
        assert info.limits.memory_bytes > 256 << 20, "a null would have meant the minimum"
        assert info.idle_ttl_ms > 10_000


def test_a_key_finds_the_living_sandbox(client: Sandbank) -> None:
    with client.sandboxes.create(key="python-sdk:found", keep=True) as first:
        pass
    with client.sandboxes.create(key="python-sdk:found") as second:
        assert (second.id, second.created, second.acquire_source) == (first.id, False, None)
        assert second.id in [sandbox.id for sandbox in client.sandboxes.list()]
        with client.sandboxes.get(first.id) as found:
            assert found.info().key == "python-sdk:found"
        assert second.commands.run("true").ok, "a found one outlives its with"
    assert first.refresh().state in ("gone", "stopping")


def test_a_machine_that_was_ready_is_told_as_such(own_server: Callable[..., OwnServer]) -> None:
    pooled = own_server(SANDBANK_POOL=f"{USUAL_IMAGE}=1")
    deadline = time.monotonic() + 30
    with Sandbank(pooled.url, pooled.token) as client:
        while True:
            # Made now, for as long as none is ready.
            with client.sandboxes.create() as sandbox:
                assert sandbox.acquire_source in ("pool", "cold")
            if sandbox.acquire_source == "pool":
                break
            assert time.monotonic() < deadline
        with client.sandboxes.create(memory_mb=300) as other:
            assert other.acquire_source == "cold", "nobody keeps such a machine"


async def test_a_kept_workspace_outlives_its_sandbox(
    client: Sandbank, server: tuple[str, str]
) -> None:
    workspace = "python-sdk-kept"
    with client.sandboxes.create(network="none", workspace=workspace) as first:
        assert first.info().workspace == workspace
        first.files.write("kept", "still here")
    with client.sandboxes.create(network="none", workspace=workspace) as second:
        assert second.files.read_text("kept") == "still here"
    with client.sandboxes.create(network="none") as other:
        assert other.info().workspace is None
    async with SandboxClient(*server) as sessions:
        await sessions.delete_workspace(workspace)


def test_a_stopped_sandbox_is_gone_and_says_why(sandbox: Sandbox) -> None:
    sandbox.commands.run("echo last words")
    sandbox.stop()
    sandbox.stop()
    with pytest.raises(Gone) as gone:
        sandbox.stats()
    assert gone.value.status == 404
    assert gone.value.details["cause"]["kind"] == "stopped"
    assert gone.value.request_id
    assert gone.value.hint
    post_mortem = sandbox.post_mortem()
    assert post_mortem.cause["kind"] == "stopped"
    assert "last words" in post_mortem.last_output
    assert post_mortem.last_commands[0].exit_code == 0


def test_a_paused_sandbox_stands_still(sandbox: Sandbox) -> None:
    sandbox.pause()
    assert sandbox.refresh().state == "paused"
    assert sandbox.stats().runner is None
    with pytest.raises(Conflict) as paused:
        sandbox.commands.run("true")
    assert paused.value.code == "sandbox_paused"
    sandbox.resume()
    assert sandbox.commands.run("true").ok
    runner = sandbox.stats().runner
    assert runner is not None
    assert runner.commands_ended == 1


def test_a_sandbox_is_attacked_and_holds(sandbox: Sandbox) -> None:
    found = sandbox.containment()
    assert found.contained
    assert found.sandbox_id == sandbox.id
    assert all(probe.standing != "failed" for probe in found.probes)


def test_a_port_is_published_at_one_url(client: Sandbank) -> None:
    with client.sandboxes.create(ports=[3000], network="none") as sandbox:
        url = sandbox.url(3000)
        assert url == sandbox.ports.publish(3000)
        ports = sandbox.ports.list()
        assert (ports.allowed, ports.published[0].url) == ((3000,), url)
        with pytest.raises(NotFound) as other:
            sandbox.ports.publish(4000)
        assert other.value.code == "port_not_found"
        sandbox.ports.unpublish(3000)
        assert sandbox.ports.list().published == ()


#: Answers every request with two letters; perl is in every Debian.
GREETER = """
use IO::Socket::INET;
my $listener = IO::Socket::INET->new(LocalPort => 3000, Listen => 5) or die;
print "ready\\n";
while (my $client = $listener->accept) {
    while (<$client>) { last if /^\\r?\\n$/ }
    print $client "HTTP/1.0 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nhi";
    close $client;
}
"""


def test_what_listens_inside_is_reached_by_its_url(client: Sandbank) -> None:
    with client.sandboxes.create(ports=[3000], network="none") as sandbox:
        # It complains of a locale that an image does not have.
        argv = ["perl", "-e", "$| = 1;" + GREETER]
        greeter = sandbox.commands.start(argv, env={"LC_ALL": "C"})
        assert next(greeter.stream()).text == "ready\n"
        assert httpx.get(sandbox.url(3000), trust_env=False).text == "hi"


def test_mistakes_have_classes(client: Sandbank, server: tuple[str, str]) -> None:
    with pytest.raises(NotFound) as missing:
        client.sandboxes.get("nothing")
    assert missing.value.code == "sandbox_not_found"
    with pytest.raises(BadRequest):
        client.sandboxes.create(image="no such image")
    with Sandbank(server[0], "wrong") as stranger, pytest.raises(Unauthorized):
        stranger.sandboxes.list()
    policy = RetryPolicy(attempts=2, first_pause=0.01)
    with Sandbank("http://127.0.0.1:1", retry=policy) as nowhere, pytest.raises(ConnectionFailed):
        nowhere.health()
    with pytest.raises(BadRequest) as bad:
        Sandbank("127.0.0.1:8080")
    assert bad.value.code == "bad_url"


def test_events_come_in_order_and_go_on_from_any_of_them(client: Sandbank) -> None:
    with client.sandboxes.create(network="none") as sandbox:
        seen: list[Event] = []
        for event in client.events():
            if event.sandbox_id == sandbox.id:
                seen.append(event)
            if event.kind == "sandbox.running" and event.sandbox_id == sandbox.id:
                break
        assert [event.kind for event in seen] == ["sandbox.created", "sandbox.running"]
        later = client.events(after=seen[0].seq)
        assert next(later).seq == seen[0].seq + 1
    stopped = next(event for event in later if event.kind == "sandbox.stopped")
    assert stopped.sandbox_id == sandbox.id


def test_one_client_serves_many_threads(sandbox: Sandbox) -> None:
    results: dict[int, str] = {}

    def work(number: int) -> None:
        results[number] = sandbox.commands.run(f"echo {number}").stdout

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: f"{number}\n" for number in range(16)}


def test_a_transport_of_ones_own_is_used(server: tuple[str, str]) -> None:
    asked: list[str] = []

    class Watching(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            asked.append(request.url.path)
            return super().handle_request(request)

    with Sandbank(*server, transport=Watching()) as client:
        client.health()
    assert asked == ["/v1/health"]
