"""Schedulers that die without a word, at the worst moments there are."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from scheduler.testing.pod_builder import PodBuilder
from tests.faults.bench import FaultBench, fault
from tests.faults.failpoints.control import names
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.faults.test_before_the_bind import gatekeepers
from tests.integration.api import eventually
from tests.integration.daemon import LEASE
from tests.integration.third_party.install import install

SENT = "request.sent"
FATAL = ("stop", "inbox", "lease", "relist")
"""Areas in which an internal error, or what leads to it, ends the process."""

LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}"


@fault(26, "leader killed (-9) when it has sent its 50th bind, under L2", starred=True)
def test_leader_killed_with_binds_in_flight(bench: FaultBench) -> None:
    """The other one takes over, and what the dead one had sent takes no place twice."""
    for name in ("a", "b"):
        bench.scheduler(name, failpoints=True, supervise=False)
    dead = bench.leader
    other = next(s for s in bench.schedulers.values() if s is not dead)
    bench.failpoints.order(SENT, "kill", match="POST .*/binding", skip=49)
    bench.load_l2()
    killed_s = dead.wait_exit(-signal.SIGKILL)
    bench.settle(timeout_s=120.0)
    first_s = min(r.received_s for r in bench.history().binds() if r.user == other.user)
    bench.figure("second instance binds after", at_most(20), first_s - killed_s, "s")
    sent = [r for r in bench.history().binds() if r.user == dead.user]
    bench.figure("binds that the dead one had sent", at_most(50), len(sent))
    bench.figure("pods bound", exactly(400), len(bench.cluster.bound()))
    bench.verdict()


@fault(32, "killed (-9) at each of the failpoints, one after another")
def test_killed_at_every_failpoint(bench: FaultBench, tmp_path: Path) -> None:
    """Whatever a scheduler was doing when it died, the next one finishes it."""
    work = Work(bench, tmp_path)
    reached = 0
    for name in names():
        reached += work.killed_at(name)
    bench.settle(timeout_s=120.0)
    bench.figure("failpoints at which it died", exactly(len(names())), reached)
    bench.figure("failpoints", at_least(20), len(names()))
    bench.verdict()


@fault(32, "an internal error at each of the failpoints, one after another")
def test_internal_error_at_every_failpoint(bench: FaultBench, tmp_path: Path) -> None:
    """A bug of our own at any moment costs at most the process, which is started again; no pod and no room."""
    work = Work(bench, tmp_path)
    moments = sorted(names().keys() - {"stop.draining"}, key=lambda name: name.partition(".")[0] not in FATAL)
    for name in moments:
        work.raised_at(name)  # those that end the process come first: a restart would hide what others left behind
    bench.settle(timeout_s=120.0)
    scheduler = work.scheduler
    eventually(lambda: scheduler.daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 0, "no leak")
    bench.figure("failpoints at which it went wrong", exactly(len(moments)), sum(map(work.is_reached, moments)))
    bench.note(f"{scheduler.restarts} restarts")
    bench.verdict(tolerated=["FailpointError"])


class Work:
    """A scheduler, and everything that it can be asked to do.

    Attributes:
        scheduler: it takes part in an election and is started again when it dies.
    """

    def __init__(self, bench: FaultBench, directory: Path) -> None:
        self._bench, self._cluster, self._points = bench, bench.cluster, bench.failpoints
        self._signals = directory / "signals"
        self._signals.mkdir()
        self._round = 0
        self._lonely = ""
        cluster = self._cluster
        cluster.create(*(cluster.node(f"n{i}", cpu="200", pods="200") for i in range(4)))
        cluster.create(cluster.node("theirs", pods="200").taint("reserved"))
        self._high = cluster.priority_class("high", 1000, preempts=True)
        self.scheduler: SupervisedScheduler = bench.scheduler(
            failpoints=True,
            profile=gatekeepers(self._signals),
            environment=install(directory / "site"),
        )

    def killed_at(self, name: str) -> bool:
        """Have it killed at a failpoint, and wait until its successor leads; returns whether it died there."""
        restarts = self.scheduler.restarts
        self._points.order(name, "kill")
        self._lead_to(name)()
        eventually(lambda: self._points.is_spent(name), f"failpoint {name} to be reached", timeout_s=60.0)
        eventually(lambda: self.scheduler.restarts > restarts, f"the end at {name}", timeout_s=60.0)
        self._cluster.client.call("DELETE", LEASE_PATH)  # of the dead one; waiting for its end is another test's
        eventually(lambda: self.scheduler.leads, "the next one to lead", timeout_s=120.0)
        self._complete_gang()
        return self.scheduler.exits[restarts][1] == -signal.SIGKILL

    def raised_at(self, name: str) -> None:
        """Have something raise at a failpoint, once, and wait until there is a leader again."""
        moment, restarts = self._points.order(name, "raise", times=1), self.scheduler.restarts
        self._lead_to(name)()
        moment.wait()
        self._points.withdraw(name)
        if name.partition(".")[0] in FATAL:
            eventually(lambda: self.scheduler.restarts > restarts, f"the end after {name}", timeout_s=60.0)
            self._cluster.client.call("DELETE", LEASE_PATH)
        eventually(lambda: self.scheduler.leads, "somebody to lead", timeout_s=120.0)
        self._complete_gang()

    def is_reached(self, name: str) -> bool:
        return bool(self._points.reached(name))

    def _lead_to(self, name: str) -> Callable[[], None]:
        """Return what brings the scheduler to a failpoint."""
        area = name.partition(".")[0]
        if area == "relist":
            return self.scheduler.kill  # the successor lists first of all
        if name in ("stop.draining", "lease.before_release"):
            return lambda: self.scheduler.signal(signal.SIGTERM)
        if area == "lease":
            return lambda: None  # it renews all the time
        if area == "evict":
            return self._preempt
        if name == "bind.before_read":
            return self._rival
        if area in ("nominate", "prebind"):
            return self._prebind
        if area == "permit":
            return self._wait_in_permit
        if area in ("binding", "undo") and name != "binding.succeeded":
            return self._rival
        if area in ("failure", "status"):
            return self._hopeless
        return self._plain

    def _next(self) -> str:
        self._round += 1
        return f"{self._round:02}"

    def _plain(self) -> None:
        number = self._next()
        self._cluster.create(*(self._cluster.pod(f"plain-{number}-{i}") for i in range(5)))

    def _wait_in_permit(self) -> None:
        """Have a pod wait for its partner, who comes only after the death: the test's plugin remembers no half gangs."""
        self._lonely = f"gang-{self._next()}"
        self._cluster.create(self._of_gang(self._lonely))

    def _complete_gang(self) -> None:
        if self._lonely:
            self._cluster.create(self._of_gang(self._lonely, "-partner"))
            self._cluster.wait_bound(self._lonely, f"{self._lonely}-partner", timeout_s=60.0)
            self._lonely = ""

    def _of_gang(self, gang: str, suffix: str = "") -> PodBuilder:
        return self._cluster.pod(f"{gang}{suffix}").label("gang", gang).label("gang-size", "2")

    def _prebind(self) -> None:
        name = f"hold-{self._next()}"
        (self._signals / f"{name}.go").touch()
        self._cluster.create(self._cluster.pod(name).label("hold", "yes"))

    def _hopeless(self) -> None:
        self._cluster.create(self._cluster.pod(f"hopeless-{self._next()}").node_selector({"no": "where"}))

    def _rival(self) -> None:
        """Have somebody else bind a pod between its decision and its bind."""
        name = f"rival-{self._next()}"
        self._cluster.create(self._cluster.pod(name).label("hold", "yes"))
        eventually((self._signals / f"{name}.held").exists, f"{name} in PreBind")
        assert self._cluster.bind(name, f"{self._cluster.namespace}-theirs")[0] == 201
        (self._signals / f"{name}.go").touch()

    def _preempt(self) -> None:
        """Have a pod need the place of another one."""
        cluster, number = self._cluster, self._next()
        own = {"small": number}
        cluster.create(cluster.node(f"small-{number}", cpu="1").labels(own))
        victim = cluster.pod(f"victim-{number}").requests(cpu="1").node_selector(own)
        cluster.create(victim.set("spec.terminationGracePeriodSeconds", 0))
        cluster.wait_bound(f"victim-{number}", timeout_s=60.0)
        preemptor = cluster.pod(f"preemptor-{number}").requests(cpu="1").node_selector(own)
        cluster.create(preemptor.set("spec.priorityClassName", self._high))
