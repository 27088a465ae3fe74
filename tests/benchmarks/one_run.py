"""One run: a namespace is filled, one contestant binds its pods, everything is measured, checked and cleared away.

    fill ─▶ watch ─▶ start the contestant ─▶ (ready: noise, creation) ─▶ first bind … last bind ─▶ settle ─▶ check ─▶ clear

CPU is taken at the first and the last bind ("while binding") and again when the contestant has come to rest, because
events are still being posted then. Starting up and the first list are in neither.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.benchmarks import procfs
from tests.benchmarks.api import Api, Samples, for_each
from tests.benchmarks.bind_watch import BindWatch
from tests.benchmarks.contestants import NULL, PODIUM, STARTERS, Running
from tests.benchmarks.placements import problems
from tests.benchmarks.stats import first_to_last_rate, histogram_percentile, percentile, sampled_rate
from tests.benchmarks.workloads import INIT, MEASURED, Workload, node_name
from tests.controlplane.cluster import ControlPlane

__all__ = ["InvalidRunError", "Run", "fill_cluster"]

READY_S = 60.0
SETTLE_S = 60.0
SETTLE_STEP_S = 0.5
AT_REST = 0.04  # share of a core below which a contestant counts as at rest
CREATORS = 16
SLOWEST_PODS_PER_S = 15
REQUESTS = "apiserver_request_total"
DURATIONS = "apiserver_request_duration_seconds_bucket"
EVENTS_DROPPED = "podium_events_dropped_total"


class InvalidRunError(RuntimeError):
    """Placements are wrong, pods stayed pending, or a process ended; the figures mean nothing."""


@dataclass(slots=True)
class _Cpu:
    """CPU seconds of all three processes at some moment, and of the whole machine and the harness."""

    at_s: float
    scheduler: float
    apiserver: float
    etcd: float
    machine: float
    harness: float

    def since(self, earlier: _Cpu, pods: int) -> dict[str, float]:
        """Return milliseconds a pod since an earlier moment."""
        spent = {
            "scheduler": self.scheduler - earlier.scheduler,
            "apiserver": self.apiserver - earlier.apiserver,
            "etcd": self.etcd - earlier.etcd,
        }
        return {name: round(seconds * 1e3 / pods, 3) for name, seconds in spent.items()}

    def others_cores(self, earlier: _Cpu) -> float:
        """Return how many cores strangers kept busy since an earlier moment; more than a little spoils a run."""
        ours = sum(
            getattr(self, name) - getattr(earlier, name) for name in ("scheduler", "apiserver", "etcd", "harness")
        )
        return round(max(self.machine - earlier.machine - ours, 0.0) / max(self.at_s - earlier.at_s, 0.01), 2)


@dataclass(slots=True)
class _Marks:
    first: _Cpu | None = None
    last: _Cpu | None = None
    created_s: dict[str, float] = field(default_factory=dict)


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

    async def _clear(self) -> None:
        await self._api.delete_pods(self.namespace)
        await self._api.delete("/api/v1/nodes/churn-node")

    # --- the race --------------------------------------------------------------------------------------------------

    async def _compete(self) -> dict[str, Any]:
        load, api, plane = self._workload, self._api, self._plane
        watch = BindWatch(plane.port, plane.ssl_context(), self.namespace, MEASURED, load.pods)
        before = await api.metrics((REQUESTS, DURATIONS))
        await watch.start(await api.resource_version())
        started_s = perf_counter()
        running = STARTERS[self._contestant](plane, self._bindings(), self.namespace)
        watch.on_first = lambda: self._mark_first(running)
        watch.on_last = lambda: self._mark_last(running)
        helpers = [asyncio.create_task(self._surroundings(running))]
        try:
            await self._wait(watch, running, helpers)
            rest = await self._settle(running)
            after = await api.metrics((REQUESTS, DURATIONS))
            figures = self._figures(watch, started_s)
            figures |= self._requests(before, after)
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
        """Once the contestant is ready: create pods if they are to arrive, and make noise."""
        load = self._workload
        async with asyncio.timeout(READY_S):
            while not await asyncio.to_thread(running.is_ready, self._tls):  # noqa: ASYNC110  another process is asked
                await asyncio.sleep(0.1)
        parts: list[Awaitable[None]] = []
        if load.creation_rate:
            parts.append(self._create_slowly())
        if load.noise is not None:
            parts.append(load.noise(self._api, self.namespace))
        await asyncio.gather(*parts)

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

    async def _settle(self, running: Running) -> _Cpu:
        """Wait until the contestant uses next to no CPU; noise keeps some contestants busy, so not for ever.

        Returns:
            the moment at which it came to rest, to half a second.
        """
        last = self._cpu(running)
        for _ in range(int(SETTLE_S / SETTLE_STEP_S) if self._workload.noise is None else 4):
            await asyncio.sleep(SETTLE_STEP_S)
            now = self._cpu(running)
            if now.scheduler - last.scheduler < AT_REST * SETTLE_STEP_S:
                break
            last = now
        return last

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

    def _cpu(self, running: Running) -> _Cpu:
        pids = (running.process.pid, self._plane.apiserver.pid, self._plane.etcd.pid)
        own = (procfs.cpu_s(pid) for pid in pids)
        return _Cpu(perf_counter(), *own, procfs.machine_cpu_s(), procfs.cpu_s(os.getpid()))

    def _mark_first(self, running: Running) -> None:
        self._marks.first = self._cpu(running)

    def _mark_last(self, running: Running) -> None:
        self._marks.last = self._cpu(running)

    def _since_first(self, moment: _Cpu | None) -> dict[str, float] | None:
        if self._marks.first is None or moment is None:
            return None
        return moment.since(self._marks.first, self._workload.pods)

    def _pace(self, rest: _Cpu) -> dict[str, float | None]:
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
        created_s = self._marks.created_s
        waits_ms = [(bound_s - created_s[name]) * 1e3 for name, bound_s in watch.bound_s.items() if name in created_s]
        sampled = sampled_rate(times_s, times_s[0])
        return {
            "workload": self._workload.key,
            "contestant": self._contestant,
            "nodes": self._workload.nodes,
            "pods": self._workload.pods,
            "pods_per_s": round(first_to_last_rate(times_s) or 0.0, 1),
            "pods_per_s_sampled": None if sampled is None else round(sampled, 1),
            "start_to_first_bind_s": round(times_s[0] - started_s, 2),
            "create_to_bind_ms_p50": _rounded(percentile(waits_ms, 50)),
            "create_to_bind_ms_p99": _rounded(percentile(waits_ms, 99)),
            "bind_times_s": [round(t - times_s[0], 4) for t in times_s],
            "cpu_ms_per_pod": self._since_first(self._marks.last),
        }

    def _requests(self, before: Samples, after: Samples) -> dict[str, Any]:
        counts = _delta(before[REQUESTS], after[REQUESTS])
        pods = self._workload.pods
        old, new = (_bind_histogram(samples[DURATIONS]) for samples in (before, after))
        return {
            "requests_per_pod": round(sum(counts.values()) / pods, 3),
            "requests": {name: int(count) for name, count in sorted(counts.items()) if count >= 1},
            "events_posted": int(counts.get("POST events", 0)),
            "bind_request_ms_p50": _rounded(_times_1000(histogram_percentile(old, new, 50))),
            "bind_request_ms_p99": _rounded(_times_1000(histogram_percentile(old, new, 99))),
        }

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
    await api.create_all([_namespace("default"), _namespace(INIT, team="devops")])
    await api.create_all(workload.node(i) for i in range(workload.nodes))
    if workload.running is None or workload.reset:
        return
    if workload.per_namespace:
        count = math.ceil(workload.init / workload.per_namespace)
        await api.create_all(_namespace(f"{INIT}-{i}", team="devops") for i in range(count))
    await api.create_all(running_pods(workload, ""))


def running_pods(workload: Workload, namespace: str) -> list[dict[str, Any]]:
    """Return what runs beforehand, the i-th pod on the i-th node and round again."""
    make = workload.running
    if make is None:
        return []

    def home(index: int) -> str:
        if namespace:
            return namespace
        return f"{INIT}-{index // workload.per_namespace}" if workload.per_namespace else INIT

    return [make(i, home(i), node_name(i % workload.nodes)) for i in range(workload.init)]


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _unchecked(plane: ControlPlane) -> ssl.SSLContext:
    """Return a TLS context for contestants' own servers, whose certificates they made themselves."""
    context = plane.ssl_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _delta(before: list[Any], after: list[Any]) -> dict[str, float]:
    """Return how many requests came in between, by verb and resource; long-running ones and the harness's own apart."""
    totals: dict[str, float] = {}
    for sign, samples in ((-1, before), (1, after)):
        for labels, value in samples:
            sub = labels.get("subresource", "")
            name = f"{labels['verb']} {labels['resource']}{'/' + sub if sub else ''}"
            totals[name] = totals.get(name, 0.0) + sign * value
    return {name: count for name, count in totals.items() if count > 0}


def _bind_histogram(samples: list[Any]) -> dict[float, float]:
    found: dict[float, float] = {}
    for labels, value in samples:
        if labels.get("subresource") == "binding" and labels.get("verb") == "POST":
            bound = float(labels["le"].replace("+Inf", "inf"))
            found[bound] = found.get(bound, 0.0) + value
    return found


def _times_1000(value: float | None) -> float | None:
    return None if value is None else value * 1e3


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
