"""Supervising: helpers are started again; what nothing works without ends the thread, and the process with it."""

import asyncio
import threading

import pytest
from structlog.testing import capture_logs

from scheduler.app import scheduling as scheduling_module
from scheduler.app.daemon import Daemon
from scheduler.app.supervising import VitalTasks, keep_running
from scheduler.app.taking_over import TakingOver
from scheduler.config.flags import complete, parse_flags
from scheduler.kube.credentials import FileCredentials


def test_helper_that_breaks_is_started_again(monkeypatch):
    """And said, with its name."""
    monkeypatch.setattr("scheduler.app.supervising._RESTART_S", 0.0)
    second = asyncio.Event()

    async def live():
        starts = []

        async def helper():
            starts.append(None)
            if len(starts) > 1:
                second.set()
                await asyncio.sleep(3600)
            raise RuntimeError("a bug")

        task = keep_running("events", helper)
        await second.wait()
        task.cancel()

    with capture_logs() as logs:
        asyncio.run(live())
    assert [(entry["helper"], entry["err"]) for entry in logs] == [("events", "RuntimeError('a bug')")]


async def _break(text):
    raise RuntimeError(text)


async def _outcome(*works, cancel=False):
    ends = []
    vital = VitalTasks(lambda: ends.append(None))
    for work in works:
        vital.start(work)
    await asyncio.sleep(0.01)
    if cancel:
        await vital.cancel()
    try:
        vital.check()
    except RuntimeError as error:
        return len(ends), str(error)
    return len(ends), None


@pytest.mark.parametrize(
    ("works", "outcome"),
    [
        pytest.param(lambda: [asyncio.sleep(0)], (0, None), id="one that has ended well"),
        pytest.param(lambda: [asyncio.sleep(3600)], (0, None), id="one that was cancelled"),
        pytest.param(lambda: [asyncio.sleep(3600), _break("a bug")], (1, "a bug"), id="one that broke"),
        pytest.param(lambda: [_break("first"), _break("second")], (1, "first"), id="two that broke"),
    ],
)
def test_first_vital_task_that_breaks_ends_everything(works, outcome):
    """Once; an end that was asked for is no breakage."""

    async def run():
        return await _outcome(*works(), cancel=True)

    assert asyncio.run(run()) == outcome


def _scheduling():
    """Return a scheduling thread that runs, and has no API server to speak to."""
    daemon = Daemon(complete(parse_flags([]), {}.__getitem__), credentials=FileCredentials("https://127.0.0.1:1"))
    daemon.scheduling.start()
    assert daemon.scheduling.started.wait(10)
    return daemon.scheduling


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        pytest.param(TakingOver, "see_all", id="taking over"),
        pytest.param(scheduling_module.SchedulingThread, "_until_synced", id="watching"),
    ],
)
def test_bug_in_what_nothing_works_without_ends_the_scheduling_thread(monkeypatch, owner, method):
    """A leader that renews its lease and never decides would be the worst of all."""

    async def broken(*_args):
        raise RuntimeError("a bug")

    monkeypatch.setattr(owner, method, broken)
    scheduling = _scheduling()
    scheduling.watch()
    scheduling.lead("")
    with pytest.raises(RuntimeError, match="a bug"):
        scheduling.ended.result(timeout=10)


def test_bug_in_the_comparison_after_a_take_over_does_not_end_the_leader(monkeypatch):
    """The next comparison comes in minutes."""
    compared = threading.Event()

    async def nothing(*_args):
        return False

    async def broken(*_args):
        compared.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(TakingOver, "see_all", nothing)
    monkeypatch.setattr(scheduling_module.SchedulingThread, "_until_synced", nothing)
    monkeypatch.setattr(scheduling_module.SchedulingThread, "_freeze_when_synced", nothing)
    monkeypatch.setattr(scheduling_module.Comparing, "compare", broken)
    scheduling = _scheduling()
    scheduling.lead("")
    assert compared.wait(10)
    asyncio.run(scheduling.drain(0.1))  # an answer of the thread's loop, after the bug
    assert not scheduling.ended.done()
    scheduling.stop()
    assert scheduling.ended.result(timeout=10) is None
