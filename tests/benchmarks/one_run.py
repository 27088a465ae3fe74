"""One run: a namespace is filled, one contestant binds its pods, everything is measured, checked and cleared away.

    fill ─▶ watch ─▶ start the contestant ─▶ (ready: noise, creation) ─▶ first bind … last bind ─▶ settle ─▶ check ─▶ clear

CPU is taken at the first and the last bind ("while binding") and again when the contestant has come to rest, because
events are still being posted then. Starting up and the first list are in neither.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections import Counter, defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.benchmarks import procfs, request_counts
from tests.benchmarks.api import Api, for_each
from tests.benchmarks.bind_watch import BindWatch
from tests.benchmarks.contestants import NULL, PODIUM, STARTERS, Running
from tests.benchmarks.objects import pod
from tests.benchmarks.placements import problems
from tests.benchmarks.stats import first_to_last_rate, percentile, sampled_rate
from tests.benchmarks.usage import Usage
from tests.benchmarks.workloads import INIT, MEASURED, Workload, node_name
from tests.controlplane.cluster import ControlPlane

__all__ = ["InvalidRunError", "Run", "fill_cluster", "fill_nodes"]

READY_S = 60.0
SETTLE_S = 60.0
NOISY_SETTLE_S = 5.0  # noise keeps the contestant busy
SETTLE_STEP_S = 0.5
QUIET_STEPS = 4
MOST_SETTLES = 3
AT_REST = 0.04  # share of a core below which a contestant counts as at rest
CREATORS = 16
SLOWEST_PODS_PER_S = 15
WARM_UP = "w-000000"
WAIT_PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
EVENTS_DROPPED = "podium_events_dropped_total"


class InvalidRunError(RuntimeError):
    """Placements are wrong, pods stayed pending, or a process ended; the figures mean nothing."""


@dataclass(slots=True)
class _Marks:
    first: Usage | None = None
    last: Usage | None = None
    created_s: dict[str, float] = field(default_factory=dict)
    freed_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


class Run:
    """One contestant on one workload."""

    def __init__(self, plane: ControlPlane, api: Api, workload: Workload, contestant: str, number: int) -> None:
        self._plane = plane
        self._api = api
        self._workload = workload
        self._contestant = contestant
        short = "".join(c for c in contestant if c.isalpha())[-8:]
        self.namespace = f"{workload.key.lower()}-{short}-{number}"
        self._marks = _Marks()
        self._tls = _unchecked(plane)

    async def measure(self) -> dict[str, Any]:
        """Do the whole run; returns its figures.

        Raises:
            InvalidRunError: see there.
        """
        try:
            await self._fill()
            return await self._compete()
        finally:
            await self._clear()

    # --- before and after ----------------------------------------------------------------------------------------

    async def _fill(self) -> None:
        load = self._workload
        await self._api.create(_namespace(self.namespace, team="devops"))
        await self._api.create_all(load.also(self.namespace))
        if load.reset:
            await self._api.create_all(running_pods(load, self.namespace))
        if not load.creation_rate:
            await self._api.create_all(load.measured(i, self.namespace) for i in range(load.pods))
        await self._api.create_all(load.parked(self.namespace))
        if self._warms_up:
            await self._api.create(pod(WARM_UP, self.namespace, requests={"cpu": "100m"}))

    async def _clear(self) -> None:
        await self._api.delete_pods(self.namespace)
        await self._api.delete("/api/v1/nodes/churn-node")

    # --- the race --------------------------------------------------------------------------------------------------

    async def _compete(self) -> dict[str, Any]:
        load, api, plane = self._workload, self._api, self._plane
        watch = BindWatch(plane.port, plane.ssl_context(), self.namespace, MEASURED, load.pods)
        await watch.start(await api.resource_version())
        before, sent = await api.metrics(request_counts.FAMILIES), Counter(api.sent)
        running = STARTERS[self._contestant](plane, self._bindings(), self.namespace)
        watch.on_first = lambda: self._mark_first(running)
        watch.on_last = lambda: self._mark_last(running)
        helpers = [asyncio.create_task(self._surroundings(running))]
        try:
            await self._wait(watch, running, helpers)
            figures = self._figures(watch, running.started_s)
            for _ in range(MOST_SETTLES):
                rest = await self._settle(running, SETTLE_S if load.noise is None else NOISY_SETTLE_S)
                after = await api.metrics(request_counts.FAMILIES)
                figures |= request_counts.figures(before, after, api.sent - sent, load.pods)
                # One that has not posted all events may have been kept from it by others; or it has dropped some.
                if self._contestant == NULL or load.noise is not None or figures["events_posted"] >= load.pods:
                    break
            figures["cpu_ms_per_pod_settled"] = self._since_first(rest)
            figures |= self._pace(rest)
            figures["peak_rss_mb"] = round(procfs.peak_rss_mb(running.process.pid), 1) or None
            figures["events_dropped"] = self._events_dropped(running)
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            await watch.stop()
            await asyncio.to_thread(running.process.stop)
        await self._check()
        return figures

    async def _surroundings(self, running: Running) -> None:
        """Once the contestant is ready (and binds): create pods if they are to arrive, and make noise."""
        load = self._workload
        async with asyncio.timeout(READY_S):
            while not await asyncio.to_thread(running.is_ready, self._tls):  # noqa: ASYNC110  another process is asked
                await asyncio.sleep(0.1)
            while self._warms_up and not await self._is_warm():  # noqa: ASYNC110  another process is asked
                await asyncio.sleep(0.2)
        if self._warms_up:
            await self._settle(running, SETTLE_S)  # what it has to say about pods that do not fit is said
        parts: list[Awaitable[None]] = []
        if load.creation_rate:
            parts.append(self._create_slowly())
        if load.noise is not None:
            parts.append(load.noise(self._api, self.namespace, self._note_free))
        await asyncio.gather(*parts)

    @property
    def _warms_up(self) -> bool:
        """Whether waits count from events of the run: then the scheduler binds one more pod first."""
        return bool(self._workload.creation_rate) or self._workload.slot is not None

    async def _is_warm(self) -> bool:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{WARM_UP}"
        return b'"nodeName"' in (await self._api.request("GET", path)).body

    def _note_free(self, slot: str) -> None:
        self._marks.freed_s[slot].append(perf_counter())

    async def _create_slowly(self) -> None:
        load, created_s = self._workload, self._marks.created_s
        begin_s = perf_counter()

        async def create(index: int) -> None:
            if math.isfinite(load.creation_rate):
                await asyncio.sleep(max(begin_s + index / load.creation_rate - perf_counter(), 0.0))
            manifest = load.measured(index, self.namespace)
            created_s[manifest["metadata"]["name"]] = perf_counter()
            await self._api.create(manifest)

        await for_each(range(load.pods), create, CREATORS)

    async def _wait(self, watch: BindWatch, running: Running, helpers: list[asyncio.Task[None]]) -> None:
        load = self._workload
        timeout_s = READY_S + load.pods / SLOWEST_PODS_PER_S
        deadline_s = perf_counter() + timeout_s
        while not await watch.wait(1.0):
            failed = [task for task in helpers if task.done() and task.exception() is not None]
            if failed:
                raise InvalidRunError(f"{self.namespace}: {failed[0].exception()!r}")
            # The null scheduler ends early; it is not asked, so that its CPU time can still be read.
            if self._contestant != NULL and not running.process.is_running:
                raise InvalidRunError(f"{self._contestant} ended:\n{running.process.log_tail()}")
            if perf_counter() > deadline_s:
                bound = len(watch.bound_s)
                raise InvalidRunError(
                    f"{self._contestant} bound {bound} of {load.pods} pods in {timeout_s:.0f} s; end of its log:\n"
                    f"{running.process.log_tail()[-800:]}"
                )

    async def _settle(self, running: Running, most_s: float) -> Usage:
        """Wait until the contestant uses next to no CPU, but not for ever.

        Returns:
            the moment at which it came to rest, to half a second.
        """
        last, quiet = self._cpu(running), 0
        rest = last
        for _ in range(int(most_s / SETTLE_STEP_S)):
            await asyncio.sleep(SETTLE_STEP_S)
            now = self._cpu(running)
            # One quiet step proves nothing: on a busy machine others may have had the CPU.
            quiet = quiet + 1 if now.scheduler - last.scheduler < AT_REST * SETTLE_STEP_S else 0
            rest, last = (rest if quiet else now), now
            if quiet == QUIET_STEPS:
                break
        return rest

    def _bindings(self) -> Path:
        """Write the list of the null scheduler."""
        load, file = self._workload, self._plane.directory / f"{self.namespace}.list"
        if self._contestant == NULL:
            assert load.target is not None
            pods = range(load.pods)
            lines = [f"{self.namespace} {MEASURED}{i:06d} {node_name(load.target(i, load.nodes))}" for i in pods]
            file.write_text("\n".join(lines) + "\n")
        return file

    # --- figures -----------------------------------------------------------------------------------------------------

    def _cpu(self, running: Running) -> Usage:
        return Usage.now(running.process.pid, self._plane.apiserver.pid, self._plane.etcd.pid)

    def _mark_first(self, running: Running) -> None:
        self._marks.first = self._cpu(running)

    def _mark_last(self, running: Running) -> None:
        self._marks.last = self._cpu(running)

    def _since_first(self, moment: Usage | None) -> dict[str, float] | None:
        if self._marks.first is None or moment is None:
            return None
        return moment.ms_per_pod(self._marks.first, self._workload.pods)

    def _pace(self, rest: Usage) -> dict[str, float | None]:
        first, last = self._marks.first, self._marks.last
        if first is None or last is None:
            return {"pods_per_s_until_rest": None, "others_cores": None}
        pods = self._workload.pods
        return {
            "pods_per_s_until_rest": round(pods / max(rest.at_s - first.at_s, 0.001), 1),
            "others_cores": last.others_cores(first),
        }

    def _figures(self, watch: BindWatch, started_s: float) -> dict[str, Any]:
        times_s = sorted(watch.bound_s.values())
        sampled = sampled_rate(times_s, times_s[0])
        waits_ms = self._waits_ms(watch, started_s)
        return {
            "num_bound": len(times_s),
            "watch_reopened": watch.num_reopened,
            "pods_per_s": round(first_to_last_rate(times_s) or 0.0, 1),
            "pods_per_s_sampled": None if sampled is None else round(sampled, 1),
            "start_to_first_bind_s": round(times_s[0] - started_s, 2),
            "start_to_last_bind_s": round(times_s[-1] - started_s, 2),
            "waits_for": self._waits_for,
            "wait_ms": {str(p): _rounded(percentile(waits_ms, p)) for p in WAIT_PERCENTILES},
            "cpu_ms_per_pod": self._since_first(self._marks.last),
        }

    @property
    def _waits_for(self) -> str:
        """From when on a pod waits: its creation, or what came later: the scheduler's start, a place becoming free."""
        if self._workload.slot is not None:
            return "freed"
        return "created" if self._workload.creation_rate else "started"

    def _waits_ms(self, watch: BindWatch, started_s: float) -> list[float]:
        """Return how long each pod waited; a freed slot is counted to the pods that wait for such a one, in order."""
        load, created_s = self._workload, self._marks.created_s
        if load.slot is None:
            return [(bound_s - created_s.get(name, started_s)) * 1e3 for name, bound_s in watch.bound_s.items()]
        bound_s: dict[str, list[float]] = defaultdict(list)
        for name, at_s in sorted(watch.bound_s.items(), key=lambda item: item[1]):
            bound_s[load.slot(int(name.removeprefix(MEASURED)))].append(at_s)
        pairs = [zip(self._marks.freed_s[slot], times_s, strict=False) for slot, times_s in bound_s.items()]
        return [(bound - freed) * 1e3 for slot_pairs in pairs for freed, bound in slot_pairs]

    def _events_dropped(self, running: Running) -> int | None:
        if self._contestant != PODIUM:
            return None
        samples = running.metrics(self._tls, (EVENTS_DROPPED,))
        return int(sum(value for _, value in samples[EVENTS_DROPPED]))

    async def _check(self) -> None:
        api = self._api
        nodes, pods = await api.list("/api/v1/nodes"), await api.list("/api/v1/pods")
        wrong = await asyncio.to_thread(problems, nodes, pods, await api.list("/api/v1/namespaces"))
        mine = [p for p in pods if p["metadata"]["namespace"] == self.namespace]
        measured = [p for p in mine if p["metadata"]["name"].startswith(MEASURED)]
        unbound = [p for p in measured if not p["spec"].get("nodeName")]
        parked = [p for p in mine if p["metadata"]["name"][:2] in ("x-", "g-") and p["spec"].get("nodeName")]
        if unbound or len(measured) != self._workload.pods:
            wrong.append(f"{len(unbound)} of {len(measured)} measured pods have no node at the end")
        if parked and self._workload.key != "W9b":
            wrong.append(f"{len(parked)} pods that must not run have a node, e.g. {parked[0]['metadata']['name']}")
        if wrong:
            raise InvalidRunError(f"{self.namespace}: {len(wrong)} placements are wrong:\n" + "\n".join(wrong[:5]))


async def fill_cluster(api: Api, workload: Workload) -> None:
    """Create the nodes, and what runs beforehand in every run alike."""
    await fill_nodes(api, workload)
    if workload.running is None or workload.reset:
        return
    if workload.per_namespace:
        count = math.ceil(workload.init / workload.per_namespace)
        await api.create_all(_namespace(f"{INIT}-{i}", team="devops") for i in range(count))
    await api.create_all(running_pods(workload, ""))


async def fill_nodes(api: Api, workload: Workload) -> None:
    """Create the nodes alone."""
    await api.create_all([_namespace("default"), _namespace(INIT, team="devops")])
    await api.create_all(workload.node(i) for i in range(workload.nodes))


def running_pods(workload: Workload, namespace: str) -> list[dict[str, Any]]:
    """Return what runs beforehand, the i-th pod on the i-th node and round again."""
    make = workload.running
    if make is None:
        return []

    def home(index: int) -> str:
        if namespace:
            return namespace
        return f"{INIT}-{index // workload.per_namespace}" if workload.per_namespace else INIT

    return [make(i, home(i), node_name(workload.home(i, workload.nodes))) for i in range(workload.init)]


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _unchecked(plane: ControlPlane) -> ssl.SSLContext:
    """Return a TLS context for contestants' own servers, whose certificates they made themselves."""
    context = plane.ssl_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
