"""Failpoints obey the test, and nobody else: in the product they are names and nothing more."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.testing.pod_builder import pod
from tests.faults.failpoints.__main__ import VARIABLE
from tests.faults.failpoints.armed import Armed, FailpointError, shown
from tests.faults.failpoints.control import ROOT, Failpoints, names

HERE, THERE = "bind.before_send", "decide.assumed"
_PASS = f"""
from scheduler import failpoints
print("before", flush=True)
failpoints.failpoint("{HERE}")
print("after", flush=True)
"""
_ARM = """
import os, pathlib
from scheduler import failpoints
from tests.faults.failpoints.armed import Armed
failpoints.failpoint = Armed(pathlib.Path(os.environ["PODIUM_FAILPOINTS"])).failpoint
"""


@pytest.fixture
def points(tmp_path: Path) -> Failpoints:
    return Failpoints(tmp_path / "points")


@pytest.fixture
def armed(points: Failpoints) -> Armed:
    return Armed(points.directory)


def run(script: str, points: Failpoints) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **points.environment()}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, check=False, capture_output=True, text=True, timeout=60
    )


def in_thread(target: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def test_names_are_told_apart() -> None:
    """The tests find them in the source: each name once, in the form area.moment."""
    found = names()
    assert len(found) >= 20
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", name) for name in found), found


def test_the_product_cannot_be_disturbed(points: Failpoints) -> None:
    """With the variable set and a deadly order lying there, the product passes; its source does not know the variable."""
    points.order(HERE, "kill")
    assert run(_PASS, points).stdout == "before\nafter\n"
    assert points.reached(HERE) == []
    assert [str(p) for p in (ROOT / "scheduler").rglob("*.py") if VARIABLE in p.read_text()] == []


def test_the_start_program_puts_them_in_place_before_all_else(points: Failpoints) -> None:
    """Every module of the product that has a failpoint got the armed one."""
    script = """
import sys, runpy
import scheduler.cli.main as main_module
"""
    assert (
        "imported too early" in run(script + "from tests.faults.failpoints.__main__ import main; main()", points).stderr
    )
    script = """
import sys
sys.argv = ["podium", "version"]
from tests.faults.failpoints import __main__ as start
import os
os._exit = lambda code: None
try:
    start.main()
finally:
    import scheduler.app.daemon
    modules = [m for m in sys.modules.values() if m.__name__.startswith("scheduler.")]
    found = {getattr(m, n).__module__ for m in modules for n in ("failpoint", "async_failpoint") if hasattr(m, n)}
    print(found, file=sys.stderr)
"""
    assert run(script, points).stderr == "{'tests.faults.failpoints.armed'}\n"


@pytest.mark.parametrize(("action", "code"), [("kill", -signal.SIGKILL), ("exit", 70)])
def test_a_deadly_order_ends_one_process(action: str, code: int, points: Failpoints) -> None:
    """The one that comes next, restarted by a supervisor, is spared."""
    points.order(HERE, action)
    ended = run(_ARM + _PASS, points)
    assert (ended.returncode, ended.stdout) == (code, "before\n")
    assert points.is_spent(HERE)
    assert run(_ARM + _PASS, points).stdout == "before\nafter\n"
    assert len(points.reached(HERE)) == 1


def test_a_raised_order(points: Failpoints, armed: Armed) -> None:
    """So often as it says, after so many spared."""
    points.order(HERE, "raise", skip=1, times=1)
    armed.failpoint(HERE)
    with pytest.raises(FailpointError, match=HERE):
        armed.failpoint(HERE)
    armed.failpoint(HERE)
    armed.failpoint(THERE)


def test_a_thread_pauses_until_the_order_is_taken_away(points: Failpoints, armed: Armed) -> None:
    """Only at this failpoint, and only about what was meant."""
    first, second = pod("a").in_ns("n").obj(), pod("b").in_ns("n").obj()
    with points.paused(HERE, match="^n/b$") as moment:
        armed.failpoint(HERE, first)
        thread = in_thread(lambda: armed.failpoint(HERE, second))
        assert moment.wait()["about"] == "n/b"
        assert thread.is_alive()
    thread.join(30)
    assert not thread.is_alive()
    armed.failpoint(HERE, second)
    assert len(points.reached(HERE)) == 1


def test_a_task_that_pauses_lets_others_go_on(points: Failpoints, armed: Armed) -> None:
    """The loop is not held up."""

    async def go() -> None:
        task = asyncio.create_task(armed.async_failpoint(HERE))
        while not points.reached(HERE):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert not task.done()
        points.withdraw(HERE)
        await asyncio.wait_for(task, 30)

    points.order(HERE, "pause")
    asyncio.run(go())


def test_a_new_order_takes_the_place_of_the_old_one(points: Failpoints, armed: Armed) -> None:
    """Whoever is paused by the old one goes on; the new one counts from the beginning."""
    points.order(HERE, "pause")
    thread = in_thread(lambda: armed.failpoint(HERE))
    while not points.reached(HERE):
        thread.join(0.001)
    moment = points.order(HERE, "note")
    thread.join(30)
    assert not thread.is_alive()
    assert moment.reached() == []
    armed.failpoint(HERE, 7)
    assert [json.dumps(reached["about"]) for reached in moment.reached()] == ['"7"']


@pytest.mark.parametrize(
    ("about", "text"),
    [
        pytest.param(pod("a").in_ns("n").obj(), "n/a", id="a pod"),
        pytest.param(b"POST /x HTTP/1.1\r\nAuthorization: secret\r\n", "POST /x HTTP/1.1", id="a request, no secrets"),
        pytest.param(None, "None", id="nothing"),
        pytest.param("x" * 900, "'" + "x" * 199, id="a long text"),
    ],
)
def test_what_a_moment_is_about(about: object, text: str) -> None:
    assert shown(about) == text


def test_an_order_for_no_failpoint_is_a_mistake(points: Failpoints) -> None:
    with pytest.raises(AssertionError, match="there is no failpoint bind\\.sent"):
        points.order("bind.sent", "pause")
