"""How a client finds its server, and to whom it never shows a token."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbank.location import is_loopback, locate


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SANDBANK_URL", "SANDBANK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SANDBANK_DATA_DIR", str(tmp_path))
    (tmp_path / "token").write_text("from the file\n")
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
    assert locate("http://example.com:9999", None).token is None


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
