"""How a client finds its server, and to whom it never shows a token."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbank import SandbankError, Unauthorized
from sandbank.location import is_loopback, locate
from sandbank.sessions import SandboxClient


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SANDBANK_URL", "SANDBANK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SANDBANK_DATA_DIR", str(tmp_path))
    (tmp_path / "token").write_text("from the file\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "lock").write_text("http://127.0.0.1:9999\n")
    return tmp_path


@pytest.fixture
def held(data_dir: Path) -> Iterator[Path]:
    with open(data_dir / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield data_dir


def test_a_running_server_of_this_machine_is_found_with_its_token(held: Path) -> None:
    found = locate(None, None)
    assert (found.url, found.token) == ("http://127.0.0.1:9999", "from the file")
    assert "file" not in repr(found), "a token is never shown"


def test_a_server_that_is_no_more_gets_no_token(data_dir: Path) -> None:
    found = locate(None, None)
    assert (found.url, found.token) == ("http://127.0.0.1:8080", None)
    assert locate("http://127.0.0.1:9999", None).token is None


def test_the_token_file_is_for_its_own_server_only(held: Path) -> None:
    assert locate("http://127.0.0.1:9999/", None).token == "from the file"
    assert locate("http://127.0.0.1:8888", None).token is None
    for stranger in (
        "http://example.com:9999", "http://127.0.0.2:9999", "http://[::1]:9999",
        "https://127.0.0.1:9999", "http://127.0.0.1:9999/below", "http://localhost.x:9999",
        "http://127.0.0.1:nonsense",
    ):  # fmt: skip
        assert locate(stranger, None).token is None, stranger


def test_a_name_for_this_machine_is_dialled_as_the_announced_address(held: Path) -> None:
    found = locate("http://localhost:9999", None)
    assert (found.url, found.token) == ("http://127.0.0.1:9999", "from the file")
    assert locate("http://localhost:9998", None).token is None
    (held / "lock").write_text("http://localhost:9999\n")
    assert locate("http://localhost:9999", None).token is None, "no server announces a name"


def test_a_token_that_others_could_have_is_refused(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (held / "token").chmod(0o640)
    with pytest.raises(SandbankError, match="can be read by others") as readable:
        locate(None, None)
    assert readable.value.code == "token_file_unsafe"
    (held / "token").chmod(0o600)
    assert locate(None, None).token
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(SandbankError, match="belongs to another user"):
        locate(None, None)


def test_without_a_token_it_goes_on_without_one(held: Path) -> None:
    (held / "token").rename(held / "elsewhere")
    assert locate(None, None).token is None
    (held / "token").symlink_to(held / "elsewhere")
    assert locate(None, None).token is None, "a link may lead anywhere"


def test_the_directory_for_data_that_a_user_has_chosen_is_looked_into(
    held: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "sandbank").symlink_to(held)
    monkeypatch.delenv("SANDBANK_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    # Root has a directory of its own; as somebody else the token there is a stranger's.
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(SandbankError, match="belongs to another user"):
        locate(None, None)


def test_what_is_given_wins_over_the_environment(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBANK_URL", "https://elsewhere")
    assert locate(None, None).token is None
    monkeypatch.setenv("SANDBANK_TOKEN", " from the environment ")
    found = locate(None, None)
    assert (found.url, found.token) == ("https://elsewhere", "from the environment")
    assert locate("http://given", "given").token == "given"


def test_the_real_server_is_found_by_its_data_directory(
    own_server: object, monkeypatch: pytest.MonkeyPatch, server: tuple[str, str]
) -> None:
    from own_server import OwnServer

    assert callable(own_server)
    real: OwnServer = own_server()
    monkeypatch.delenv("SANDBANK_URL")
    monkeypatch.delenv("SANDBANK_TOKEN")
    monkeypatch.setenv("SANDBANK_DATA_DIR", str(real.directory / "data"))
    found = locate(None, None)
    assert (found.url, found.token) == (real.url, real.token)


def test_loopback_is_an_address_and_not_a_likeness() -> None:
    assert is_loopback("http://localhost:1")
    assert is_loopback("http://[::1]:1")
    assert is_loopback("http://127.1.2.3")
    for stranger in ("http://127.0.0.1.example.com", "http://10.0.0.1", "http://localhost.x"):
        assert not is_loopback(stranger), stranger


async def test_a_sessions_client_says_which_variable_it_misses(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SANDKASTEN_API_KEY", raising=False)
    with pytest.raises(Unauthorized) as refused:
        SandboxClient()
    assert refused.value.code == "no_api_key"
    assert "SANDKASTEN_API_KEY" in refused.value.message
    assert "SANDBANK_DATA_DIR" in str(refused.value.hint)
    monkeypatch.setenv("SANDKASTEN_API_KEY", "a key")
    await SandboxClient().close()
    await SandboxClient("http://127.0.0.1:9999", "another").close()
