"""Health of the daemon: which checks there are, and when they fail."""

from types import SimpleNamespace

import pytest
import structlog.testing

from scheduler.app.checks import endpoints_of
from scheduler.telemetry.metrics import Metrics


def scheduling(**facts):
    known = {
        "stack": str,
        "stuck_s": 0.0,
        "is_synced": True,
        "missing": [],
        "watch_lines": lambda: ["watch Pod: synced"],
    }
    return SimpleNamespace(**{**known, **facts})


def endpoints(thread, *, elector=None, is_stopping=False):
    completed = SimpleNamespace(configuration=None, flags=SimpleNamespace(given={}))
    return endpoints_of(
        completed,
        thread,
        elector,
        Metrics(version="0"),
        is_leader=lambda: True,
        is_stopping=lambda: is_stopping,
    )


@pytest.mark.parametrize(
    ("thread", "is_stopping", "live", "ready"),
    [
        pytest.param(scheduling(), False, 200, 200, id="all is well"),
        pytest.param(scheduling(is_synced=False, missing=["Pod"]), False, 200, 500, id="not synced yet"),
        pytest.param(scheduling(), True, 200, 500, id="shutting down"),
        pytest.param(scheduling(stuck_s=29.0), False, 200, 200, id="a slow decision"),
        pytest.param(scheduling(stuck_s=31.0), False, 500, 200, id="a decision that hangs"),
    ],
)
def test_alive_and_ready(thread, is_stopping, live, ready):
    """Alive until a decision hangs; ready once synced and until the end."""
    shown = endpoints(thread, is_stopping=is_stopping)
    assert (shown.livez.answer().status, shown.readyz.answer().status) == (live, ready)


def test_a_hanging_decision_is_shown_once_while_it_hangs():
    """The log has the stack, since whoever restarts the process takes the thread away; probes come every few seconds."""
    thread = scheduling(stuck_s=31.0, stack=lambda: "in filter")
    shown = endpoints(thread)

    def told():
        with structlog.testing.capture_logs() as log:
            shown.livez.answer()
        return [entry["stack"] for entry in log if entry["event"] == "a decision hangs"]

    assert told() == ["in filter"]
    assert told() == []
    thread.stuck_s = 0.0
    assert told() == []
    thread.stuck_s = 31.0
    assert told() == ["in filter"]


def test_names_are_kube_schedulers():
    """With an election healthz and readyz have its check; without one healthz has ping."""
    elector = SimpleNamespace(check=lambda: "failed election to renew leadership on lease podium")
    alone, electing = endpoints(scheduling()), endpoints(scheduling(), elector=elector)
    assert alone.healthz.names == ("ping",)
    assert electing.healthz.names == ("leaderElection",)
    assert electing.readyz.names == ("leaderElection", "shutdown", "sched-handler-sync")
    assert electing.healthz.answer().status == 500


def test_verbose_answer_shows_the_watches():
    """Facts that fail nothing."""
    text = endpoints(scheduling()).readyz.answer(is_verbose=True).text
    assert "watch Pod: synced" in text
