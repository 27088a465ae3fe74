"""The fault bench: a real control plane, an observer, supervised schedulers, loads, and a verdict over the history.

A test asks for the fixture `bench`, is marked with what it is about, and reads like this::

    @fault(1, "API server killed with -9, back after 10 s, under load L1", starred=True)
    def test_api_server_crash(bench: FaultBench) -> None:
        scheduler = bench.scheduler("a")
        load = bench.load_l1()
        load.wait_created(200)
        ...                                   # the fault
        end_s = time.time()
        bench.settle()
        bench.figure("N", at_most(3), bench.recovery_s(load, end_s), "s")
        bench.verdict()                       # the promises, and the figures

`verdict` must be asked, exactly once. Every test's result goes to `build/faults/results.jsonl`; what a failed run knew
(seed, history, audit log, logs of schedulers and proxies, stacks) stays in the directory that its failure names.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scheduler.testing.node_builder import NodeBuilder
from tests.faults import mutations, runbooks
from tests.faults.asking import NOT_ASKED, Answers, ask
from tests.faults.failpoints.control import Failpoints
from tests.faults.history.audit import AuditReader
from tests.faults.history.beliefs import drift
from tests.faults.history.checks import broken_promises
from tests.faults.history.logs import unforeseen
from tests.faults.history.observer import Observer
from tests.faults.history.record import History, Violation, described, is_bind, key_of
from tests.faults.history.standstill import StandstillWatch, lived
from tests.faults.loads import L1_PODS, L1_RATE, L2_PODS, L2_RATE, Load, l1_nodes, l2_nodes, recovery_s
from tests.faults.planes import AuditedPlane
from tests.faults.results import Bound, Figure, Result
from tests.faults.samples import Sampler
from tests.faults.sights import metrics_show, sights_of
from tests.faults.supervisor import SupervisedScheduler
from tests.faults.truth import lies_at_rest
from tests.integration.api import Cluster, Json, condition, eventually
from tests.integration.checker import nodes_that_fit
from tests.integration.daemon import LEASE, Daemon

fault = pytest.mark.fault
"""Marks a test: number in the table, the fault in words, ``starred`` if CI runs it always; ``flags``, ``etcd_flags``: a
control plane of its own, with these flags of API server and etcd; ``fresh``: one of its own with the usual flags."""

SETTLE_S = 60.0
BELIEF_S = 60.0
"""Long enough for a standby to take over from a leader that has just died."""
OPENED = 20
"""So many pods are bound when `open_nodes` returns; as many are under way."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class FaultBench:
    """One test's bench.

    Attributes:
        audited: the control plane with its audit log.
        cluster: the administrator's view; its namespace and schedulerName are this test's own.
        observer: records every version of pods and nodes.
        random: seeded; for whatever the test leaves to chance.
        seed: of it, and of the proxies.
        schedulers: by name.
        directory: for files of this run.
        failpoints: of the schedulers that have some.
        sampler: asks the schedulers each second what they say of themselves.
        standstill: notes when the whole machine stood still.
    """

    def __init__(self, audited: AuditedPlane, result: Result, directory: Path) -> None:
        self.audited = audited
        self.plane = audited.plane
        self.result = result
        self.seed = result.seed
        self.random = random.Random(self.seed)
        self.directory = directory
        self.cluster = Cluster(self.plane, f"fault-{result.number}")
        self.plane.request("DELETE", f"{_LEASES}/{LEASE}")
        self.failpoints = Failpoints(directory / "failpoints")
        self.observer = Observer(self.plane)
        self.audit = AuditReader(audited.audit_file)
        self.sampler = Sampler(self.plane)
        self.standstill = StandstillWatch()
        self.schedulers: dict[str, SupervisedScheduler] = {}
        self.violations: list[Violation] = []
        self._violations_kept = 0
        self._judged = History(frozenset(), frozenset())
        self.secrets: list[str] = []
        self._loads: list[Load] = []
        self._elected: set[str] = set()
        self._answers = Answers()
        self._since_s = 0.0
        self._seen: set[str] = set()
        self._num_read = 0

    # --- setting up --------------------------------------------------------------------------------------------------

    def scheduler(
        self,
        name: str = "a",
        *,
        elect: bool = True,
        proxied: bool = False,
        supervise: bool = True,
        wait: bool = True,
        profile: Mapping[str, Any] | None = None,
        lease: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        failpoints: bool = False,
        identity: tuple[str, Path] | None = None,
        verbosity: int = 2,
        wrapper: Sequence[str] = (),
    ) -> SupervisedScheduler:
        """Start a scheduler that is started again when it ends.

        Args:
            name: unique in the test; it speaks as user ``podium-NAME``.
            elect: take part in leader election.
            proxied: speak to the API server through a fault proxy of its own: `SupervisedScheduler.proxy`.
            supervise: start it again when it ends.
            wait: until it is ready.
            profile: more fields of its profile, e.g. plugins.
            lease: more fields of leaderElection, e.g. a shorter lease.
            configuration: more fields of the configuration file.
            flags: more flags.
            environment: more variables.
            failpoints: let it obey `FaultBench.failpoints`.
            identity: user and kubeconfig instead of ``podium-NAME`` with its client certificate.
            verbosity: `-v`.
            wrapper: see `Daemon`.
        """
        user = f"podium-{name}"
        user, kubeconfig = identity or (user, self.audited.identity(user))
        proxy = self._proxy(name) if proxied else None
        if proxy is not None:
            kubeconfig = proxy.kubeconfig(kubeconfig)
        points = self.failpoints if failpoints or mutations.wanted() else None
        election = {"leaderElect": elect, "resourceName": LEASE, "resourceNamespace": "kube-system", **(lease or {})}

        pod_uid = str(uuid.uuid4())  # of the pod, whose containers follow one another

        def start() -> Daemon:
            return Daemon(
                self.plane,
                kubeconfig,
                profiles=[{"schedulerName": self.cluster.scheduler, **(profile or {})}],
                configuration={"leaderElection": election, **(configuration or {})},
                flags=["--logging-format=json", *flags],
                environment={
                    "PYTHONFAULTHANDLER": "1",
                    "POD_UID": pod_uid,
                    **(environment or {}),
                    **(points.environment(environment or {}) if points else {}),
                },
                program=points.program if points else ("-m", "scheduler"),
                verbosity=verbosity,
                wrapper=wrapper,
            )

        made = SupervisedScheduler(name, user, start, supervise=supervise, proxy=proxy)
        self.schedulers[name] = made
        if elect:
            self._elected.add(user)
        self._answers = Answers(unheard=(NOT_ASKED,))
        self.sampler.follow(made)
        if wait:
            made.wait_ready()
        return made

    def _proxy(self, name: str) -> Any:
        from tests.faults.proxy import FaultProxy

        return FaultProxy.start(self.plane, seed=self.seed, log_file=self.directory / f"proxy-{name}.jsonl")

    def load_l1(self, pods: int = L1_PODS, rate: float = L1_RATE, *, closed: bool = False) -> Load:
        """Create 50 nodes (``closed``: until `open_nodes`), and begin to create 1,000 pods at 50 a second."""
        self._create_nodes(l1_nodes(self.cluster), closed=closed)
        return self.load(pods, rate)

    def load_l2(self, pods: int = L2_PODS, rate: float = L2_RATE, *, closed: bool = False) -> Load:
        """Create 20 nodes and begin to create 400 pods at 100 a second that fill them exactly."""
        self._create_nodes(l2_nodes(self.cluster), closed=closed)
        return self.load(pods, rate, cpu="1")

    def _create_nodes(self, nodes: Iterable[NodeBuilder], *, closed: bool) -> None:
        self.cluster.create(*(node.taint("closed") if closed else node for node in nodes))

    def open_nodes(self, load: Load) -> None:
        """Open the closed nodes for the pods that wait for them; returns while binds are under way.

        No scheduler sees it until all are open: on a slow machine the pods would be bound before the last node is.
        """
        self.cluster.wait_unschedulable(load.created[-1])
        with self._frozen():
            for node in self.cluster.nodes():
                self.cluster.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": None}})
        eventually(lambda: self.num_bound() > OPENED, "the first binds", poll_s=0.002)

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        for scheduler in self.schedulers.values():
            scheduler.freeze()
        try:
            yield
        finally:
            for scheduler in self.schedulers.values():
                scheduler.thaw()

    def num_bound(self) -> int:
        """Return how many pods of the test the observer knows to be bound."""
        pods = self.observer.live("Pod").values()
        return sum(
            bool(p["spec"].get("nodeName")) for p in pods if p["metadata"]["namespace"] == self.cluster.namespace
        )

    def load(self, pods: int, rate: float, *, cpu: str = "100m", prefix: str = "load") -> Load:
        """Begin to create pods at an even rate."""
        made = Load(self.cluster, pods, rate, cpu, prefix).start()
        self._loads.append(made)
        return made

    def forget(self, load: Load) -> None:
        """Wait no more for the pods of a load: they do not exist any more."""
        load.stop()
        self._loads.remove(load)

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> SupervisedScheduler:
        """The scheduler that leads, of those that take part in the election; waits until there is exactly one."""

        def probe() -> SupervisedScheduler | None:
            candidates = [s for s in self.schedulers.values() if s.user in self._elected]
            leading = [s for s in candidates if s.is_running and s.leads]
            return leading[0] if len(leading) == 1 else None

        return eventually(probe, "one leader", timeout_s=60.0)

    def changes_of_leader(self) -> int:
        """Return how often the lease has gone from one of our schedulers to another, or to a restarted one."""
        holders = [
            request.body["spec"]["holderIdentity"]
            for request in sorted(self.audit.read(), key=lambda r: r.received_s)
            if request.resource == "leases" and request.is_write and request.is_done and request.body
            if request.user in {s.user for s in self.schedulers.values()} and request.body["spec"].get("holderIdentity")
        ]
        return sum(before != after for before, after in pairwise(holders))

    def bound_at(self) -> dict[str, float]:
        """Return when each pod was bound, by UID, in seconds since the epoch: by the audit log where it knows."""
        return self.history().bound_at()

    def recovery_s(self, load: Load, end_s: float) -> float:
        """Return N: how long after the end of the fault the binding rate was back (see `loads.recovery_s`).

        Only binds that were sent after it count: what the API server carries out late had been sent before.
        """
        names = {f"{self.cluster.namespace}/{name}" for name in load.created}
        sent = [r for r in self.audit.read() if is_bind(r) and r.key in names and r.received_s > end_s]
        live = [pod for pod in self.observer.live("Pod").values() if key_of(pod) in names]
        is_complete = len(names) >= load.pods and all(pod["spec"].get("nodeName") for pod in live)
        return recovery_s((r.finished_s for r in sent if r.is_done), end_s, rate=load.rate, is_complete=is_complete)

    def history(self) -> History:
        """Return everything that is known so far."""
        history = self._recorded()
        history.events = self._events()
        return history

    def _recorded(self) -> History:
        """Return what needs no answer of the API server: all but the events."""
        return History(
            users=frozenset(s.user for s in self.schedulers.values()),
            schedulers=self._profiles(),
            elected=frozenset(self._elected),
            versions=list(self.observer.versions),
            requests=self.audit.read(),
            beliefs=list(self._answers.beliefs),
            unheard=list(self._answers.unheard),
            samples=list(self.sampler.samples),
            since_s=self._since_s,
            bound_before=frozenset(self.observer.bound_before),
            standstills=list(self.standstill.found),
        )

    def _events(self) -> list[Json]:
        listed: list[Json] = self.cluster.client.ok("GET", self._events_path())["items"]
        return listed

    def _events_path(self) -> str:
        return f"/apis/events.k8s.io/v1/namespaces/{self.cluster.namespace}/events"

    # --- the end -----------------------------------------------------------------------------------------------------

    def settle(self, timeout_s: float = SETTLE_S) -> float:
        """Wait until everything is created, every pod is bound or told why not, and what the schedulers believe is true.

        Returns at the end of the time too: `verdict` then says what is missing.

        Returns:
            seconds it took, the creation not counted.
        """
        for load in self._loads:
            load.wait_created()
        begun_s = time.monotonic()
        self._wait(self._is_settled, timeout_s)
        seconds = time.monotonic() - begun_s
        self._wait(self._has_observed, BELIEF_S)
        self._wait(self._is_believed, BELIEF_S)
        return seconds

    @staticmethod
    def _wait(probe: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not (is_true := probe()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return is_true

    def _is_settled(self) -> bool:
        """Tell whether every pod is bound, or fits nowhere and has been told so; by the observer's record."""
        everywhere = list(self.observer.live("Pod").values())
        if not {name for load in self._loads for name in load.created} <= self._names_seen():
            return False  # the observer is behind
        pending = [pod for pod in everywhere if not pod["spec"].get("nodeName") and self._is_ours(pod)]
        if not all(condition(dict(pod)) for pod in pending):
            return False
        nodes = list(self.observer.live("Node").values())
        return not any(nodes_that_fit(pod, nodes, everywhere) for pod in pending)

    def _names_seen(self) -> set[str]:
        """Return the names of the test's pods that the observer has ever seen; some may be deleted by now."""
        new = self.observer.versions[self._num_read :]
        for version in new:
            if version.kind == "Pod" and version.object["metadata"]["namespace"] == self.cluster.namespace:
                self._seen.add(version.name)
        self._num_read += len(new)
        return self._seen

    def _is_ours(self, pod: Json) -> bool:
        spec = pod["spec"]
        return spec.get("schedulerName") in self._profiles() and not spec.get("schedulingGates")

    def _profiles(self) -> frozenset[str]:
        """Return the schedulerNames of all that run."""
        return frozenset(name for scheduler in self.schedulers.values() for name in scheduler.daemon.schedulers)

    def _has_observed(self) -> bool:
        """Tell whether the observer has the newest version of everything."""
        for kind, path in (("Pod", "/api/v1/pods"), ("Node", "/api/v1/nodes")):
            listed = _versions(self.cluster.client.ok("GET", path)["items"])
            if listed != _versions(self.observer.live(kind).values()):
                return False
        return True

    @contextlib.contextmanager
    def new_epoch(self) -> Iterator[None]:
        """Enter while the API server is down; replace its data by older ones and start it inside."""
        self.audit.read()
        self.audit.epoch += 1
        yield
        self.observer.restart()

    def history_now(self) -> History:
        """Return what the observer has, without asking the server."""
        return History(frozenset(), self._profiles(), versions=list(self.observer.versions))

    def _is_believed(self) -> bool:
        """Ask every scheduler that decides for its beliefs; tell whether all have answered, and all of it is true."""
        self._answers = ask(self.schedulers.values(), self._elected)
        history = self.history_now()
        history.beliefs, history.unheard = list(self._answers.beliefs), list(self._answers.unheard)
        return not drift(history)

    def figure(self, name: str, required: Bound | float, measured: float, unit: str = "") -> None:
        """Note a figure; `verdict` fails if it is not met.

        Args:
            name: e.g. ``N``.
            required: `at_most`, `at_least` or `exactly`; a plain number is an upper bound.
            measured: what it was.
            unit: ``s`` for durations, which may take longer by `PODIUM_FAULT_PATIENCE`.
        """
        figure = Figure.of(name, required, measured, unit)
        self.result.figures.append(figure)
        print(figure)

    def note(self, text: str) -> None:
        """Add what the reader of the table of results should know."""
        self.result.notes.append(text)

    def verdict(self, *, tolerated: Sequence[str] = (), ignored: Sequence[str] = ()) -> None:
        """Judge the run by the criteria of all tests, and by the figures that were noted.

        Args:
            tolerated: patterns of log lines whose tracebacks are part of the test (a plugin that raises).
            ignored: words of criteria that do not apply to this test, e.g. ``drift``; they are not counted.

        Raises:
            AssertionError: a promise was broken or a figure missed.
        """
        self.judge(tolerated=tolerated, ignored=ignored)
        self._try_runbooks()
        for each in self.standstill.found:
            self.note(f"the machine stood still for {each.for_s:.1f} s, which the promises are judged without")
        missed = [figure for figure in self.result.figures if not figure.is_accepted]
        self.result.is_passed = not self.violations and not missed
        counted = ", ".join(f"{name} {count}" for name, count in self.result.promises.items())
        print(f"{counted}; seed {self.seed}")
        assert not self.violations, f"{counted}\n{described(self.violations)}"
        assert not missed, f"figures missed: {', '.join(map(str, missed))}"

    def judge(self, *, tolerated: Sequence[str] = (), ignored: Sequence[str] = ()) -> None:
        """Count broken promises, beside those that were counted before; `verdict` does so at the end."""
        self._judged = self.history()
        found = broken_promises(lived(self._judged))
        found["dishonest status"] += self._lies_at_rest()
        found["exceptions"] = self._exceptions(tolerated)
        found["secrets in logs"] = self._leaks()
        for name in ignored:
            found.pop(name)
        for name, violations in found.items():
            self.result.promises[name] = self.result.promises.get(name, 0) + len(violations)
            self.violations += violations

    def _try_runbooks(self) -> None:
        """Try the runbooks of the alerts that this fault brings about on what was recorded."""
        samples = self.sampler.samples
        hidden = runbooks.without_result(metrics_show(self.result.test), samples, self.directory)
        self.result.promises["dishonest status"] += len(hidden)
        self.violations += [Violation("G10", f"the metrics never showed the fault: {query}") for query in hidden]
        for sight in sights_of(self.result.test):
            events = [(event["reason"], event.get("note", "")) for event in self._events()]
            log = "".join(scheduler.log() for scheduler in self.schedulers.values())
            wrong = runbooks.check(sight, samples, log, events, self.directory)
            self.result.promises["runbooks"] = self.result.promises.get("runbooks", 0) + len(wrong)
            self.violations += [Violation("runbook", each) for each in wrong]

    def _lies_at_rest(self) -> list[Violation]:
        """Return what those that decide still say of themselves that is not so; all of them have been asked before."""
        deciding = [s for s in self.schedulers.values() if s.is_running and s.leads]
        for scheduler in deciding:
            self.sampler.wait_asked(scheduler)
        return [Violation("G10", f"{s.name} at rest: {lie}") for s in deciding for lie in lies_at_rest(self, s)]

    def cut(self) -> None:
        """Forget what has been judged, in runs of hours; what exists now stays known, and what led to a broken promise."""
        if len(self.violations) > self._violations_kept:
            self._violations_kept = len(self.violations)
            self._judged.save(self.directory / f"history-{len(self.violations)}.jsonl")
        self._names_seen()
        self.observer.cut()
        self._num_read = 0
        self.audit.cut()
        self.sampler.cut()
        self._since_s = time.time()
        self.cluster.client.ok("DELETE", self._events_path())

    def _exceptions(self, tolerated: Sequence[str]) -> list[Violation]:
        return [
            Violation("C", f"{scheduler.name} logged an exception: {line[:1000]}")
            for scheduler in self.schedulers.values()
            for line in unforeseen(scheduler.log(), tolerated)
        ]

    def _leaks(self) -> list[Violation]:
        """Return the logs that contain a private key or one of the test's `secrets`."""
        keys = [file.read_text().splitlines()[1] for file in self.plane.directory.glob("podium-*.key")]
        found = []
        for scheduler in self.schedulers.values():
            text = scheduler.log()
            found += [Violation("C", f"{scheduler.name} logged a secret") for s in [*keys, *self.secrets] if s in text]
        return found

    # --- after it ----------------------------------------------------------------------------------------------------

    def keep(self, directory: Path) -> None:
        """Keep everything that helps to understand a failed run."""
        directory.mkdir(parents=True, exist_ok=True)
        for scheduler in self.schedulers.values():
            if scheduler.is_running:  # its stacks go to its log
                scheduler.thaw()
                scheduler.stop_supervising()
                scheduler.signal(signal.SIGABRT)
                self._wait(lambda s=scheduler: not s.is_running, 10.0)  # type: ignore[misc]
            for number, log in enumerate(scheduler.logs):
                shutil.copy(log, directory / f"scheduler-{scheduler.name}-{number}.log")
        for log in [*self.plane.directory.glob("*.log"), *self.directory.glob("*.jsonl")]:
            if not log.name.startswith("podium-"):
                shutil.copy(log, directory)
        if self.audited.audit_file.exists():
            shutil.copy(self.audited.audit_file, directory)
        history = self._recorded()
        try:
            history.events = self._events()
        except (OSError, http.client.HTTPException, AssertionError) as error:
            (directory / "no-events.txt").write_text(f"the API server could not be asked for them: {error}\n")
        history.save(directory / "history.jsonl")
        (directory / "violations.txt").write_text("\n".join(map(str, self.violations)) + "\n")
        (directory / "seed.json").write_text(json.dumps({"seed": self.seed, "test": self.result.test}))

    def close(self) -> None:
        """End everything that the test started; the cluster's objects and the control plane stay."""
        with contextlib.ExitStack() as ending:
            ending.callback(self.cluster.client.close)
            ending.callback(self.observer.stop)
            for scheduler in self.schedulers.values():
                if scheduler.proxy is not None:
                    ending.callback(scheduler.proxy.stop)
                ending.callback(scheduler.stop)
            ending.callback(self.sampler.stop)
            ending.callback(self.standstill.stop)
            for load in self._loads:
                ending.callback(load.stop)


def _versions(items: Iterable[Json]) -> dict[str, str]:
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}
