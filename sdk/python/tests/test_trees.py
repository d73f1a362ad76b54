"""Trees, searches, changes and repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from cutting_proxy import STUBBORN, Cuts, CuttingProxy

from sandbank import (
    AsyncSandbox,
    BadRequest,
    Conflict,
    FoundLine,
    FoundName,
    GitPerson,
    NamesEnd,
    NotFound,
    Sandbank,
    Sandbox,
    TextEnd,
    WatchEvent,
)

AUTHOR = GitPerson("A. Writer", "writer@example.org")


@pytest.fixture
def sources(sandbox: Sandbox) -> Sandbox:
    sandbox.files.write("src/main.rs", "first\nlet wanted = 1;\nlast wanted wanted\n", mode=0o644)
    sandbox.files.write("src/deep/notes.txt", "Wanted, with a capital\n")
    sandbox.files.write(".hidden", "wanted\n")
    sandbox.files.write("build/out", "wanted\n")
    sandbox.files.write(".ignore", "build/\n")
    return sandbox


def test_a_tree_is_told_whole_or_says_that_it_is_not(sources: Sandbox) -> None:
    tree = sources.files.tree(sort=True)
    assert [entry.path for entry in tree if not entry.path.startswith(".")] == [
        "build", "src", "build/out", "src/deep", "src/main.rs", "src/deep/notes.txt",
    ]  # fmt: skip
    assert (len(tree), tree.truncated, tree.reason) == (8, False, None)
    told = {one.path: one for one in sources.files.tree("src", stat=True)}["src/main.rs"]
    assert (told.size, told.mode, (told.modified_ms or 0) > 0) == (41, 0o644, True)
    cut = sources.files.tree(nodes=2)
    assert (len(cut), cut.truncated, cut.reason) == (2, True, "nodes")
    level = sources.files.tree("src", hidden=False, depth=1, sort=True)
    assert [entry.path for entry in level] == ["src/deep", "src/main.rs"]
    with pytest.raises(NotFound):
        sources.files.tree("missing")


def test_trees_are_copied_and_permissions_set(sources: Sandbox) -> None:
    assert sources.files.copy("src", "copied").kind == "directory"
    assert sources.files.read_text("copied/main.rs").startswith("first")
    with pytest.raises(Conflict):
        sources.files.copy("src/main.rs", "copied/main.rs")
    assert sources.files.copy(".hidden", "copied/main.rs", overwrite=True).size == 7
    assert sources.files.chmod("copied/main.rs", 0o600).mode == 0o600
    sources.files.chmod("copied", 0o700, recursive=True)
    assert sources.files.stat("copied/deep/notes.txt").mode == 0o700


def test_names_are_found(sources: Sandbox) -> None:
    *found, end = sources.files.search_names("main")
    assert found == [FoundName("src/main.rs", "file")]
    assert isinstance(end, NamesEnd)
    assert (end.matches, end.truncated) == (1, False)
    globbed = [
        one.path for one in sources.files.search_names("*.txt", kind="glob") if one.type == "entry"
    ]
    assert globbed == ["src/deep/notes.txt"]
    *none, end = sources.files.search_names("nowhere")
    assert (none, end.type) == ([], "end")


def test_text_is_found_with_its_places(sources: Sandbox) -> None:
    *lines, end = sources.files.search_text("wanted", after=1, sort="path")
    assert [(one.type, one.path, one.line, one.ranges) for one in lines if one.type != "end"] == [
        ("match", "src/main.rs", 2, ((4, 10),)),
        ("match", "src/main.rs", 3, ((5, 11), (12, 18))),
    ]
    assert isinstance(end, TextEnd)
    assert (end.matches, end.files_matched, end.truncated) == (2, 1, False)
    context = list(sources.files.search_text("= 1", literal=True, before=1))
    assert [one.type for one in context] == ["context", "match", "end"]
    everything = sources.files.search_text("WANTED", case="insensitive", hidden=True, ignored=True)
    assert {one.path for one in everything if isinstance(one, FoundLine)} == {
        "src/main.rs", "src/deep/notes.txt", ".hidden", "build/out",
    }  # fmt: skip
    *first, end = sources.files.search_text("wanted", limit=1)
    assert (len(first), end.type) == (1, "end")
    assert isinstance(end, TextEnd)
    assert (end.truncated, end.reason) == (True, "limit")
    with pytest.raises(BadRequest) as refused:
        list(sources.files.search_text("wanted("))
    assert "literal" in (refused.value.hint or "")


def changes(events: Iterator[WatchEvent], *, until: str) -> list[tuple[str, str | None]]:
    seen = []
    for event in events:
        seen.append((event.kind, event.path))
        if event.path == until:
            return seen
    raise AssertionError(f"it ended before {until}: {seen}")


def test_changes_are_told_and_the_end_too(sources: Sandbox) -> None:
    events = sources.files.watch("src")
    ready = next(events)
    assert ready.kind == "ready"
    sources.files.write("src/new", b"1")
    sources.files.move("src/new", "src/newer")
    moved = next(event for event in events if event.path == "src/newer")
    assert (moved.kind, moved.from_, moved.is_dir) == ("moved", "src/new", False)
    # Who comes back with a number is told all that followed.
    again = changes(sources.files.watch("src", after=ready.seq), until="src/newer")
    assert again[-1] == ("moved", "src/newer")
    sources.stop()
    last = list(events)[-1]
    assert (last.kind, last.reason is not None) == ("end", True)


def test_a_watch_that_is_cut_goes_on_without_a_gap(
    sources: Sandbox, server: tuple[str, str], cutting: Callable[[Cuts], CuttingProxy]
) -> None:
    proxy = cutting(Cuts(700, 1400))
    with Sandbank(proxy.url, server[1], retry=STUBBORN) as client:
        events = client.sandboxes.get(sources.id).files.watch("src", recursive=False)
        assert next(events).kind == "ready"
        names = [f"src/{number:03}" for number in range(60)]
        for name in names:
            sources.files.mkdir(name)
        seen = changes(events, until=names[-1])
    assert [path for kind, path in seen if kind == "created"] == names
    assert {kind for kind, _ in seen} == {"created"}
    assert proxy.cut > 0, "it was never cut"


def test_a_repository_is_looked_at_and_changed(sandbox: Sandbox) -> None:
    git = sandbox.git
    nothing = git.status()
    assert (nothing.is_repository, nothing.entries, nothing.reason is not None) == (False, (), True)
    sandbox.commands.run("git init -q -b main .", check=True)
    sandbox.files.write("a", "one\n")
    (entry,) = git.status().entries
    assert (entry.path, entry.worktree) == ("a", "untracked")
    git.stage(["a"])
    assert git.status().entries[0].index == "added"
    git.unstage(["a"])
    git.stage(all=True)
    commit = git.commit("the first", author=AUTHOR)
    status = git.status()
    assert (status.head.branch, status.head.commit, status.entries) == ("main", commit, ())
    sandbox.files.write("a", "two\n")
    assert "+two" in git.diff("a").diff
    assert git.diff(staged=True).diff == ""
    assert "+two" in git.diff(from_="HEAD").diff
    shown = git.show("a")
    assert (shown.found, shown.content, shown.commit) == (True, "one\n", commit)
    assert not git.show("missing").found
    git.checkout("other", create=True)
    git.stage(["a"])
    second = git.commit("the second", author=AUTHOR)
    log = git.log(limit=1)
    assert [(one.id, one.parents, one.author, one.message.strip()) for one in log.commits] == [
        (second, (commit,), AUTHOR, "the second")
    ]
    assert (log.more, log.start) == (True, second)
    branches = {one.name: (one.current, one.commit) for one in git.branches().branches}
    assert branches == {"main": (False, commit), "other": (True, second)}
    with pytest.raises(Conflict):
        git.commit("nothing to commit", author=AUTHOR)


async def test_all_of_it_is_awaited_too(async_sandbox: AsyncSandbox) -> None:
    files, git = async_sandbox.files, async_sandbox.git
    await files.write("src/a", "wanted\n")
    assert [entry.path for entry in await files.tree(sort=True)] == ["src", "src/a"]
    assert (await files.copy("src/a", "src/b")).size == 7
    assert (await files.chmod("src/b", 0o600)).mode == 0o600
    lines = [one async for one in files.search_text("wanted", sort="path")]
    assert [one.type for one in lines] == ["match", "match", "end"]
    named = [one async for one in files.search_names("b")]
    assert [one.type for one in named] == ["entry", "end"]

    events = files.watch()
    assert (await events.__anext__()).kind == "ready"
    told = asyncio.create_task(events.__anext__())
    await files.mkdir("made")
    assert ((await told).kind, (await told).path) == ("created", "made")
    await events.aclose()

    assert not (await git.status()).is_repository
    await async_sandbox.commands.run("git init -q -b main .", check=True)
    await git.stage(all=True)
    commit = await git.commit("all", author=AUTHOR)
    assert [one.id for one in (await git.log()).commits] == [commit]
    assert (await git.show("src/a")).content == "wanted\n"
    assert [one.name for one in (await git.branches()).branches] == ["main"]
    assert (await git.diff()).diff == ""
    await git.checkout("next", create=True)
    await git.unstage(all=True)
    assert (await git.status()).head.branch == "next"
