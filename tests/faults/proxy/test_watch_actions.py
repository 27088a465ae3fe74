"""What a plain client sees of each watch action."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable

import pytest

from tests.faults.proxy import (
    CutMidLine,
    DropLines,
    DuplicateLines,
    EndWatch,
    ErrorLine,
    FaultProxy,
    HoldLines,
    Lines,
    Match,
    MergeRecreated,
    Rewrite,
    RewriteText,
    Rule,
    SwapLines,
    suppress_bookmarks,
)
from tests.faults.proxy.conftest import Connect, Server, Watch, event
from tests.faults.proxy.watch import BOOKMARK

WATCHES = Match(verb="watch", resource="pods")
OpenWatch = Callable[[], Watch]


@pytest.fixture
def open_watch(server: Server, connect: Connect) -> OpenWatch:
    """Open a watch through the proxy."""
    return lambda: Watch(connect(), server)


def test_lines_pass_one_by_one_and_the_end_is_clean(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """Without rules, a watch is what the server sends."""
    watch = open_watch()
    watch.push(event("ADDED", "a"))
    assert watch.read() == ["ADDED a"]
    watch.push(event("ADDED", "b"), event("MODIFIED", "a"))
    assert watch.read(2) == ["ADDED b", "MODIFIED a"]
    watch.end()
    assert watch.answer.read() == b""
    assert proxy.requests[-1].lines == 3


def test_drop_some_lines(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """By type, name or anything else; a rule is in force for watches that stand already."""
    watch = open_watch()
    handle = proxy.add(Rule(WATCHES, DropLines(Lines(types=("ADDED",), name="^default/a$"))))
    watch.push(event("ADDED", "a"), event("ADDED", "b"), event("MODIFIED", "a"), event("ADDED", "a"))
    watch.push(event("DELETED", "a"))
    assert watch.read(3) == ["ADDED b", "MODIFIED a", "DELETED a"]
    assert (handle.hits, handle.looked_at) == (2, 2)
    assert proxy.decisions[-1].detail == "ADDED default/a 1"


def test_number_counts_lines(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """`nth` and `probability` are about lines here."""
    proxy.add(Rule(Match(verb="watch", nth=2), DropLines()))
    watch = open_watch()
    watch.push(*(event("ADDED", name) for name in "abc"))
    assert watch.read(2) == ["ADDED a", "ADDED c"]


def test_suppressed_bookmarks(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """Everything but bookmarks."""
    proxy.add(Rule(WATCHES, suppress_bookmarks()))
    watch = open_watch()
    watch.push(event("BOOKMARK", ""), event("ADDED", "a"))
    assert watch.read() == ["ADDED a"]


def test_duplicates(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """Each line twice."""
    proxy.add(Rule(WATCHES, DuplicateLines()))
    watch = open_watch()
    watch.push(event("ADDED", "a"), event("ADDED", "b"))
    assert watch.read(4) == ["ADDED a", "ADDED a", "ADDED b", "ADDED b"]


def test_swapped_pairs(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """Neighbours change places, but lines about one object never do, and a bookmark stays behind what it speaks of."""
    proxy.add(Rule(WATCHES, SwapLines(at_most_s=30.0)))
    watch = open_watch()
    watch.push(event("ADDED", "a"), event("ADDED", "b"), event("MODIFIED", "a"), event("DELETED", "a"))
    watch.push(event("ADDED", "c"), event("BOOKMARK", "-"))
    assert watch.read(6) == ["ADDED b", "ADDED a", "MODIFIED a", "DELETED a", "ADDED c", "BOOKMARK -"]


def test_line_without_a_partner_is_not_lost(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """It goes on alone after a while, or when the rule ends."""
    proxy.add(Rule(WATCHES, SwapLines(at_most_s=0.1)))
    watch = open_watch()
    watch.push(event("ADDED", "a"))
    assert watch.read() == ["ADDED a"]
    proxy.clear()
    handle = proxy.add(Rule(WATCHES, SwapLines(at_most_s=1000.0)))
    watch.push(event("ADDED", "b"))
    eventually(lambda: handle.hits == 1)
    handle.remove()
    assert watch.read() == ["ADDED b"]


def test_held_lines_keep_their_order(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """What is held holds back all behind it; it comes after its time, or when the rule ends."""
    handle = proxy.add(Rule(WATCHES, HoldLines(None, Lines(types=("MODIFIED",)))))
    watch = open_watch()
    watch.push(event("ADDED", "a"), event("MODIFIED", "a"), event("ADDED", "b"))
    assert watch.read() == ["ADDED a"]
    eventually(lambda: handle.hits == 1)
    time.sleep(0.1)  # it would come now
    assert proxy.requests[-1].lines == 1
    handle.remove()
    assert watch.read(2) == ["MODIFIED a", "ADDED b"]
    proxy.add(Rule(WATCHES, HoldLines(0.3)))
    pushed_s = time.monotonic()
    watch.push(event("ADDED", "c"))
    assert watch.read() == ["ADDED c"]
    assert time.monotonic() - pushed_s >= 0.3


def test_deletion_and_creation_as_one_change(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """The object seems to be the same, with another UID."""
    proxy.add(Rule(WATCHES, MergeRecreated()))
    watch = open_watch()
    watch.push(event("ADDED", "a", "1"), event("DELETED", "a", "1"), event("ADDED", "b"), event("ADDED", "a", "2"))
    assert watch.read(2) == ["ADDED a", "ADDED b"]
    line = json.loads(watch.answer.readline())
    assert (line["type"], line["object"]["metadata"]["uid"]) == ("MODIFIED", "2")


def test_rewritten_lines(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """Objects in lines, but not in bookmarks; bytes anywhere."""

    def spoil(pod: dict[str, object]) -> dict[str, object]:
        return {**pod, "spec": "nonsense"}

    proxy.add(Rule(WATCHES, Rewrite(spoil)))
    watch = open_watch()
    watch.push(event("ADDED", "a"), event("BOOKMARK", ""))
    lines = [json.loads(watch.answer.readline())["object"] for _ in range(2)]
    assert [line.get("spec") for line in lines] == ["nonsense", None]
    proxy.clear()
    proxy.add(Rule(WATCHES, RewriteText(b'"a"', b"[" * 100)))
    watch.push(event("ADDED", "a"))
    assert b"[" * 100 in watch.answer.readline()


@pytest.mark.parametrize("has_lines", [True, False], ids=["a line is cut", "a bookmark of its own is cut"])
def test_cut_in_the_middle_of_a_line(has_lines: bool, proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """The client is left with a part of a line; the next watch is cut too."""
    holding = proxy.add(Rule(WATCHES, HoldLines()))
    watch = open_watch()
    if has_lines:
        watch.push(event("ADDED", "a"))
        eventually(lambda: holding.hits == 1)
    cutting = proxy.add(Rule(WATCHES, CutMidLine()))
    with pytest.raises(http.client.IncompleteRead) as caught:
        watch.answer.read()
    whole = event("ADDED", "a") if has_lines else BOOKMARK
    assert caught.value.partial == whole[: len(whole) // 2]
    with pytest.raises(http.client.IncompleteRead):
        open_watch().answer.read()
    eventually(lambda: cutting.hits == 2)


def test_error_line_and_closed_watch(proxy: FaultProxy, open_watch: OpenWatch) -> None:
    """A Status of 410 in a stream of status 200, then a clean end; or the clean end alone, for the second watch."""
    proxy.add(Rule(Match(verb="watch", nth=1), ErrorLine(410)))
    proxy.add(Rule(Match(verb="watch", nth=2), EndWatch()))
    lines = open_watch().answer.read().splitlines()
    assert [(json.loads(line)["type"], json.loads(line)["object"]["code"]) for line in lines] == [("ERROR", 410)]
    assert open_watch().answer.read() == b""
    watch = open_watch()
    watch.push(event("ADDED", "a"))
    assert watch.read() == ["ADDED a"]


def eventually(probe: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30.0
    while not probe():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
