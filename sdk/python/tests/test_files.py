"""Files and archives."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

import pytest

from sandbank import BadRequest, CommandFailed, Conflict, NotFound, Sandbox

BLOB = random.Random(5).randbytes(2_000_000)


def test_what_is_written_is_read(sandbox: Sandbox) -> None:
    stat = sandbox.files.write("a/b/blob", BLOB, mode=0o750)
    assert (stat.kind, stat.size, stat.mode) == ("file", len(BLOB), 0o750)
    assert sandbox.files.read("a/b/blob") == BLOB
    assert b"".join(sandbox.files.stream("/workspace/a/b/blob")) == BLOB
    sandbox.files.write("text", "hällo")
    assert sandbox.files.read_text("text") == "hällo"
    sandbox.files.write("empty", b"")
    assert sandbox.files.read("empty") == b""


def test_names_of_any_kind_survive(sandbox: Sandbox) -> None:
    for name in ("with space", "per%20cent", "a&b=c?d#e", "new\nline", "ünï", "+plus"):
        sandbox.files.write(name, name)
        assert sandbox.files.read_text(name) == name
        assert sandbox.files.stat(name).kind == "file"


def test_content_is_streamed_from_files_and_iterables(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "local").write_bytes(BLOB)
    with open(tmp_path / "local", "rb") as local:
        sandbox.files.write("from-file", local)
    assert sandbox.files.read("from-file") == BLOB
    sandbox.files.write("from-iterable", (bytes([n]) * 1000 for n in range(100)))
    assert sandbox.files.stat("from-iterable").size == 100_000


def test_directories_are_listed_moved_and_removed(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("d/e")
    sandbox.files.write("d/f", b"123")
    sandbox.commands.run("ln -s f d/link", check=True)
    listing = sandbox.files.list("d")
    assert [(entry.name, entry.kind) for entry in listing] == [
        ("e", "directory"), ("f", "file"), ("link", "symlink"),
    ]  # fmt: skip
    assert (listing.truncated, len(listing), listing.entries[2].target) == (False, 3, "f")
    sandbox.files.write("g", b"")
    with pytest.raises(Conflict):
        sandbox.files.move("d/f", "g")
    assert sandbox.files.move("d/f", "g", overwrite=True).size == 3
    with pytest.raises(Conflict):
        sandbox.files.remove("d")
    sandbox.files.remove("d", recursive=True)
    assert [entry.name for entry in sandbox.files.list()] == ["g"]
    with pytest.raises(Conflict):
        sandbox.files.mkdir("g", parents=False)


def test_mistakes_have_classes(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound):
        sandbox.files.read("missing")
    with pytest.raises(NotFound):
        sandbox.files.stat("missing")
    with pytest.raises(BadRequest) as outside:
        sandbox.files.read("/etc/passwd")
    assert outside.value.code == "outside_workspace"
    with pytest.raises(BadRequest):
        sandbox.files.write("../up", b"")


def test_an_archive_goes_in_and_comes_out(sandbox: Sandbox) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in {"x/blob": BLOB, "y": b"why"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    sandbox.files.upload_archive(packed, "unpacked")
    assert sandbox.files.read("unpacked/x/blob") == BLOB
    for path, prefix in {"unpacked": "./", ".": "./unpacked/"}.items():
        out = io.BytesIO(b"".join(sandbox.files.download_archive(path)))
        with tarfile.open(fileobj=out) as archive:
            files = {entry.name: entry for entry in archive if entry.isfile()}
            assert set(files) == {f"{prefix}x/blob", f"{prefix}y"}
            blob = archive.extractfile(files[f"{prefix}x/blob"])
            assert blob is not None
            assert blob.read() == BLOB
    assert [entry.name for entry in sandbox.files.list()] == ["unpacked"], "nothing is left behind"


def test_an_archive_that_is_none_is_an_error(sandbox: Sandbox) -> None:
    with pytest.raises(CommandFailed):
        sandbox.files.upload_archive(b"this is no archive" * 100)
    with pytest.raises(CommandFailed):
        list(sandbox.files.download_archive("missing"))
    assert len(sandbox.files.list()) == 0
