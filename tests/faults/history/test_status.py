"""Each lie that a status can tell is told here on purpose, and seen; an honest status passes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.history.leadership import writes_after_lease_end
from tests.faults.history.record import History, Request, Sample, Standstill, load
from tests.faults.history.standstill import StandstillWatch, lived, lived_s
from tests.faults.history.status import dishonest_status
from tests.integration.api import eventually

OURS, RIVAL = "podium-a", "podium-b"
START_S = 1_000.0
HEARD = "watch Pod: synced, last heard {:.0f}s ago"
PAGE = "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\n{}\nreadyz check passed\n"


def _sample(at_s: float, *, leads: bool = True, stale_s: float = 0.0, page_s: float | None = None, bound: int = 0,
            **fields: object) -> Sample:  # fmt: skip
    """Return what the first process says; it was started at 1000 s."""
    metrics = (
        f'leader_election_master_status{{name="podium"}} {int(leads)}',
        f'podium_watch_staleness_seconds{{kind="Pod"}} {stale_s}',
        f'podium_bind_outcomes_total{{outcome="bound"}} {bound}',
    )
    page = PAGE.format(HEARD.format(stale_s if page_s is None else page_s))
    said = Sample("a", OURS, 0, START_S, at_s, at_s + 0.1, ready=200, page=page, live=200, metrics=metrics)
    return replace(said, **fields)  # type: ignore[arg-type]


def _listed(resource: str, at_s: float = START_S + 2) -> Request:
    return Request(OURS, at_s, "list", resource, code=200, finished_s=at_s, uri=f"/api/v1/{resource}?limit=500")


def _renewed(at_s: float, user: str = OURS, holder: str | None = None) -> Request:
    spec = {"holderIdentity": user if holder is None else holder, "leaseDurationSeconds": 15}
    return Request(user, at_s, "update", "leases", "kube-system", "podium", 200, at_s, body={"spec": spec})


def _bound(number: int, at_s: float, code: int = 201) -> Request:
    body = {"metadata": {"uid": f"uid-{number}"}, "target": {"name": "n"}}
    return Request(OURS, at_s, "create", "pods/binding", "default", f"p{number}", code, at_s, body=body)


SYNCED = [_listed("pods"), _listed("nodes")]
LEADS = [_renewed(START_S + second) for second in range(1, 61, 2)]
"""From 1001 to 1059 s, so that the lease ends at 1074 s."""


def _history(*samples: Sample, requests: list[Request] | None = None, since_s: float = 0.0) -> History:
    asked = [*SYNCED, *LEADS] if requests is None else requests
    users = frozenset([OURS, RIVAL])
    return History(users, frozenset(["podium"]), users, requests=asked, samples=list(samples), since_s=since_s)


def _lies(*samples: Sample, requests: list[Request] | None = None, since_s: float = 0.0) -> list[str]:
    return [violation.what for violation in dishonest_status(_history(*samples, requests=requests, since_s=since_s))]


def test_an_honest_status_passes() -> None:
    """Led, listed, bound, silent while the server was dead, restarted."""
    binds = [_bound(1, 1010.0), _bound(2, 1011.0, code=0)]
    samples = [
        _sample(1004.0, stale_s=3),
        _sample(1012.0, bound=2),
        _sample(1030.0, bound=2, stale_s=18.0, silent_since_s=1012.0),
        _sample(1073.0, bound=2),
        _sample(1075.0, bound=2, leads=False),
        _sample(1080.0, leads=False, start=1, started_s=1079.0, ready=500, page="[-]sched-handler-sync failed", live=0),
        _sample(1080.5, leads=False, start=1, started_s=1079.0, ready=0, page="", live=0, metrics=()),
    ]
    assert _lies(*samples, requests=[*SYNCED, *LEADS, *binds]) == []


@pytest.mark.parametrize("missing", ["pods", "nodes"])
def test_ready_before_the_server_gave_all(missing: str) -> None:
    """A list that was refused, or came to the process before, is none."""
    late = [_listed(missing, START_S - 5), replace(_listed(missing), code=503), _listed(missing, START_S + 30)]
    requests = [*(r for r in SYNCED if r.resource != missing), *LEADS, *late]
    assert _lies(_sample(START_S + 3), requests=requests) == [
        f"a (start 0) is ready, and has not been given the {missing}"
    ]
    assert _lies(_sample(START_S + 31), requests=requests) == []
    assert _lies(_sample(START_S + 3), requests=LEADS, since_s=START_S + 1) == []  # its lists have been forgotten


def test_ready_while_a_watch_is_not_synced() -> None:
    """A kind that may not be read is not waited for, and is said to be so."""
    waiting = "watch Pod: not synced, last heard 0s ago"
    assert _lies(_sample(1004.0, page=PAGE.format(waiting))) == ["a (start 0) is ready, and waits for Pod"]
    known = f"{waiting}\nwatch Pod: not allowed to list pods"
    assert _lies(_sample(1004.0, page=PAGE.format(known))) == []


def test_ready_while_it_ends() -> None:
    assert _lies(_sample(1030.0, stopping_since_s=1029.0)) == []
    assert _lies(_sample(1040.0, stopping_since_s=1029.0)) == ["a (start 0) has been asked to end, and is ready"]


def test_a_leader_that_is_none() -> None:
    """Never elected; elected, and the lease has run out; elected, and another one has been since."""
    assert _lies(_sample(1004.0), requests=SYNCED) == ["a (start 0) says that it leads, and has never had the lease"]
    assert _lies(_sample(1075.0)) == ["a (start 0) says that it leads, 1.0 s after its lease had run out"]
    taken = [*SYNCED, *LEADS, _renewed(1060.0, RIVAL)]
    assert _lies(_sample(1064.0), requests=taken) == []  # a slow machine
    assert _lies(_sample(1070.0), requests=taken) == ["a (start 0) says that it leads, and another one has the lease"]
    released = [*SYNCED, *LEADS, _renewed(1060.0, holder="")]
    assert len(_lies(_sample(1070.0), requests=released)) == 1


def test_a_leader_that_hides_it() -> None:
    """While it still acquires the lease, or has just lost it, it may say so; not between two renewals."""
    assert _lies(_sample(1002.0, leads=False)) == []
    assert _lies(_sample(1065.0, leads=False)) == []
    assert _lies(_sample(1030.0, leads=False)) == ["a (start 0) renews the lease, and says that it does not lead"]


def test_a_successor_renews_the_lease_for_itself() -> None:
    """A process that has lost the lease does not lead, though the one after it soon does, under the same name."""
    late = [*SYNCED, *LEADS, _listed("pods", 1067.0), _listed("nodes", 1067.0), _renewed(1068.0)]
    lost, begun = _sample(1065.0, leads=False), _sample(1067.5, leads=False, start=1, started_s=1066.0)
    assert _lies(lost, begun, requests=late) == []
    assert len(_lies(lost, requests=late)) == 1  # nobody else was there to renew it
    much_later = [*SYNCED, *LEADS, _renewed(1150.0)]
    assert _lies(lost, requests=much_later) == []


def test_without_election_it_leads() -> None:
    history = _history(_sample(1030.0, leads=False))
    history.elected = frozenset()
    (lie,) = dishonest_status(history)
    assert lie.what == "a (start 0) takes part in no election, and says that it does not lead"


def test_silence_that_is_not_told() -> None:
    """Eighteen seconds after the server died nobody can have heard anything within ten."""
    told = _sample(1030.0, stale_s=8.0, silent_since_s=1012.0)
    assert _lies(_sample(1010.0), told) == [
        "a (start 0) heard of Pod 8.0 s ago, from a server that had been silent for 18.0 s"
    ]
    assert _lies(told) == []  # a process that has begun since


def test_page_and_metrics_that_contradict_each_other() -> None:
    assert _lies(_sample(1030.0, stale_s=10.0, page_s=20.0)) == ["a (start 0) last heard of Pod 20 s ago, or 10 s ago"]
    assert _lies(_sample(1030.0, stale_s=10.0, page_s=1.0)) == []  # a line has come between
    silent = _sample(1030.0, stale_s=30.0, page_s=1.0, silent_since_s=1029.0)
    assert _lies(silent) == ["a (start 0) last heard of Pod 1 s ago, or 30 s ago"]
    assert "says otherwise" in _lies(_sample(1030.0, ready=500))[0]


def test_counters_that_shrink() -> None:
    """A new process counts anew."""
    binds = [*SYNCED, *LEADS, _bound(1, 1010.0), _bound(2, 1010.0)]
    first, second = _sample(1012.0, bound=2), _sample(1013.0, bound=1)
    assert len(_lies(first, second, requests=binds)) == 1
    restarted = [_listed("pods", 1012.6), _listed("nodes", 1012.6), _renewed(1012.7)]
    assert _lies(first, replace(second, start=1, started_s=1012.5), requests=[*binds, *restarted]) == [
        "a (start 1) says that it bound 1 pods, and had asked for 0"
    ]


def test_binds_that_were_never_sent() -> None:
    """A refused bind is none; one that the dying server did not answer may be one."""
    asked = [*SYNCED, *LEADS, _bound(1, 1010.0), _bound(2, 1010.0, code=404)]
    assert _lies(_sample(1012.0, bound=2), requests=asked) == [
        "a (start 0) says that it bound 2 pods, and had asked for 1"
    ]
    assert _lies(_sample(1012.0, bound=1), requests=asked) == []


def test_nobody_lies_who_stood_still() -> None:
    """The machine was saved at 1060 s and went on half a minute later, by the time of day; then nobody wrote for 20 s."""
    stood = [Standstill(1_060.2, 30.0)]
    seen = [_sample(1_058.0), _sample(1_091.0, stale_s=4.0, silent_since_s=1_057.0)]
    requests = [*SYNCED, *LEADS, _renewed(1_092.0), _bound(1, 1_104.0), _bound(2, 1_112.0)]
    history = _history(*seen, requests=requests)
    assert {violation.at_s for violation in dishonest_status(history)} == {1_091.0}
    assert dishonest_status(lived(replace(history, standstills=stood))) == []
    late = writes_after_lease_end(lived(replace(history, standstills=stood)))
    assert [violation.at_s for violation in late] == [1_082.0]


def test_only_what_comes_after_a_standstill_is_earlier() -> None:
    """Two of them add up; a time that never was stays."""
    steps = [Standstill(100.0, 30.0), Standstill(200.0, 5.0)]
    assert [lived_s(at_s, steps) for at_s in (0.0, 99.0, 100.0, 131.0, 206.0)] == [0.0, 99.0, 100.0, 101.0, 171.0]


def test_a_step_of_the_clock_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, with its size; a clock that is set right bit by bit steps nowhere."""
    real, added_s = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + added_s[0])
    watch = StandstillWatch()
    try:
        time.sleep(0.2)
        added_s[0] = 0.1
        time.sleep(0.2)
        set_s = real()
        added_s[0] = 40.0
        eventually(lambda: watch.found, "the step to be noticed", timeout_s=10.0)
        time.sleep(0.2)
    finally:
        watch.stop()
    (step,) = watch.found
    assert step.for_s == pytest.approx(40.0, abs=0.5)
    assert set_s - 1.0 < step.at_s < set_s + 1.0


def test_samples_are_kept_with_the_history(tmp_path: Path) -> None:
    """What a failed run said can be judged again."""
    history = replace(_history(_sample(1075.0), since_s=1000.5), standstills=[Standstill(1_060.2, 30.0)])
    history.save(tmp_path / "history.jsonl")
    assert load(tmp_path / "history.jsonl") == history
