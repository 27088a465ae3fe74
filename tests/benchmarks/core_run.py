"""One in-process measurement: a core with a cluster in it decides about pods, step by step with a stop watch.

Each pod goes through five steps, timed one by one on the core's own thread::

    decode ─▶ arrive (Added) ─▶ decide (schedule_one) ─▶ conclude (permit passed, bound) ─▶ echo (Changed, from bytes)

Variant (a) is "decide" alone, (b) everything but decoding, (c) everything. After every hundredth decision a node's
heartbeat comes in. As in the daemon, the collector's thresholds are raised and the cluster is set aside (gc.freeze).
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import random
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from scheduler.api import PluginFactory
from scheduler.app.clock import SystemClock
from scheduler.app.core import Core, CoreMetrics, Surroundings
from scheduler.app.outside import GC_THRESHOLDS
from scheduler.config.load import load
from scheduler.config.options import SchedulerOptions
from scheduler.framework.registry import Registry
from scheduler.model.decode import decode_object, decode_watch_line
from scheduler.model.delta import Added, Changed, Synced
from scheduler.model.meta import KubeObject
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.plugins import IN_TREE
from scheduler.state.outbox import StartBinding
from scheduler.telemetry.metrics import Metrics
from scheduler.testing.harness import NullCoreMetrics
from tests.benchmarks.core_cases import Case, cluster_node, filling_pod, own_size
from tests.benchmarks.objects import SCHEDULER_NAME, ZONES, Template, as_served_pod

__all__ = [
    "CONFIGURATION",
    "GC_THRESHOLDS",
    "Bench",
    "InvalidRunError",
    "Timings",
    "fill_cluster",
    "measure",
    "new_core",
]

WARM_UP = 200
STEPS = ("decode", "arrive", "decide", "conclude", "echo")
CONFIGURATION = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{schedulerName: {SCHEDULER_NAME}}}]
"""


class InvalidRunError(RuntimeError):
    """The core did something that makes the figures worthless; the message says what."""


@dataclass(slots=True)
class Timings:
    """Seconds by step, one entry a pod."""

    by_step: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})
    decide_cpu_s: float = 0.0  # what other processes on the machine do is not in it

    def add(self, step: str, begin_s: float, end_s: float) -> None:
        """Note one step."""
        self.by_step[step].append(end_s - begin_s)

    def mean_us(self, *steps: str) -> float:
        """Return the mean of the sum of these steps."""
        return sum(float(np.mean(self.by_step[s])) * 1e6 for s in steps if self.by_step[s])


def new_core(
    metrics: str,
    seed: int = 1,
    configuration: str = CONFIGURATION,
    plugins: Mapping[str, PluginFactory] | None = None,
) -> Core:
    """Return a core; ``metrics`` is ``null`` or ``real``, ``plugins`` come beside those in the tree."""
    measured: CoreMetrics = Metrics(version="bench") if metrics == "real" else NullCoreMetrics()
    return Core(
        load(configuration.encode()),
        SchedulerOptions(),
        Registry.installed({**IN_TREE, **(plugins or {})}),
        Surroundings(
            clock=SystemClock(),
            random=random.Random(seed),
            perf_counter=perf_counter,
            metrics=measured,
        ),
    )


def fill_cluster(core: Core, case: Case, num_nodes: int) -> list[Node]:
    """Put the nodes and what runs on them into the core, as a first list would; returns the nodes."""
    templates = [Template(cluster_node(i)) for i in range(ZONES * 7)]
    nodes = [_decoded(Node, templates[i % len(templates)].fill(NAME=f"node-{i:05d}")) for i in range(num_nodes)]
    for made in nodes:
        core.apply(Added(made))
    filler = Template(filling_pod(case))
    for i in range(num_nodes * case.fill[0]):
        raw = filler.fill(NAME=f"filler-{i:06d}", NODE=f"node-{i % num_nodes:05d}")
        core.apply(Added(_decoded(Pod, raw)))
    for kind in core.kinds:
        core.apply(Synced(kind))
    if not core.is_synced:
        raise InvalidRunError("the core is not synced")
    return nodes


def measure(
    case: Case,
    num_nodes: int,
    num_pods: int,
    metrics: str,
    *,
    profile: bool = False,
    configuration: str = CONFIGURATION,
    plugins: Mapping[str, PluginFactory] | None = None,
) -> tuple[dict[str, Any], str]:
    """Run one case; returns its figures and, if asked for, the profile's text.

    Raises:
        InvalidRunError: pods were not placed as the case wants, or a node is over-committed.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    begin_s = perf_counter()
    core = new_core(metrics, configuration=configuration, plugins=plugins)
    nodes = fill_cluster(core, case, num_nodes)
    if case.limit is not None:
        num_pods = min(num_pods, case.limit(num_nodes))
    core.cache.update_snapshot(core.snapshot)
    gc.collect()
    gc.freeze()
    set_up_s = perf_counter() - begin_s
    warm_up = min(WARM_UP, num_pods // 2)
    run = Bench(core, case, nodes)
    run.go(0, warm_up)
    run.timings = Timings()
    profiler = cProfile.Profile(thread_time) if profile else None
    begin_s = perf_counter()
    run.go(warm_up, num_pods, profiler)
    total_s = perf_counter() - begin_s
    _check(core, case, run, num_pods)
    text = _profile_text(profiler) if profiler is not None else ""
    figures = _figures(run.timings, num_pods - warm_up)
    figures |= {
        "case": case.letter,
        "title": case.title,
        "nodes": num_nodes,
        "pods": num_pods - warm_up,
        "metrics": metrics,
        "set_up_s": round(set_up_s, 3),
        "total_s": round(total_s, 3),
        "rss_mb": round(_rss_mb(), 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    return figures, text


class _Pods:
    """Bytes of the measured pods as the watch would show them, pending and bound."""

    def __init__(self, case: Case) -> None:
        self._has_own_sizes = case.shapes == 0
        shapes = range(case.shapes or 1)
        self._pending = [_line("ADDED", as_served_pod(case.make(i), "uid-@NAME@", "100")) for i in shapes]
        self._bound = [_line("MODIFIED", _bound(case.make(i))) for i in shapes]

    def pending(self, index: int) -> bytes:
        return self._fill(self._pending, index)

    def bound(self, index: int, node_name: str) -> bytes:
        return self._fill(self._bound, index, NODE=node_name)

    def _fill(self, templates: list[Template], index: int, **tokens: str) -> bytes:
        if self._has_own_sizes:
            tokens |= own_size(index)
        return templates[index % len(templates)].fill(NAME=f"pod-{index:06d}", **tokens)


class Bench:
    """The measured loop over one core; ``on_bound`` gets each pod as the watch shows it bound."""

    def __init__(
        self, core: Core, case: Case, nodes: list[Node], on_bound: Callable[[Pod], object] = lambda pod: None
    ) -> None:
        self._core = core
        self._pods = _Pods(case)
        self._on_bound = on_bound
        self._nodes = nodes
        self._known: dict[str, Pod] = {}
        self._heartbeats = 0
        self.num_bound = 0
        self.timings = Timings()

    def go(self, begin: int, end: int, profiler: cProfile.Profile | None = None) -> None:
        """Let the pods begin..end-1 arrive, then decide about all of them."""
        self._arrive(begin, end)
        if profiler is not None:
            profiler.enable()
        for i in range(begin, end):
            self._decide(profiler)
            if i % 100 == 0:
                self._heartbeat(i)
        if profiler is not None:
            profiler.disable()

    def _arrive(self, begin: int, end: int) -> None:
        core, timings = self._core, self.timings
        for i in range(begin, end):
            line = self._pods.pending(i)
            start_s = perf_counter()
            decoded = decode_watch_line(Pod, line).obj
            decoded_s = perf_counter()
            assert isinstance(decoded, Pod), decoded
            core.apply(Added(decoded))
            timings.add("arrive", decoded_s, perf_counter())
            timings.add("decode", start_s, decoded_s)
            self._known[decoded.uid] = decoded

    def _decide(self, profiler: cProfile.Profile | None) -> None:
        core, timings = self._core, self.timings
        cpu_s, start_s = thread_time(), perf_counter()
        if not core.schedule_one():
            raise InvalidRunError("the queue had no pod to offer")
        timings.add("decide", start_s, perf_counter())
        timings.decide_cpu_s += thread_time() - cpu_s
        for instruction in core.drain_outbox():
            if isinstance(instruction, StartBinding):
                self._conclude(instruction, profiler)

    def _conclude(self, job: StartBinding, profiler: cProfile.Profile | None) -> None:
        core, timings = self._core, self.timings
        index = int(job.assumed.name.removeprefix("pod-"))
        line = self._pods.bound(index, job.node_name)
        if profiler is not None:
            profiler.disable()  # the profile is of decisions
        start_s = perf_counter()
        core.permit_passed(job)
        core.binding_succeeded(job)
        core.binding_ended(job)
        concluded_s = perf_counter()
        decoded = decode_watch_line(Pod, line).obj
        decoded_s = perf_counter()
        assert isinstance(decoded, Pod), decoded
        core.apply(Changed(self._known.pop(decoded.uid), decoded))
        timings.add("echo", decoded_s, perf_counter())
        timings.add("conclude", start_s, concluded_s)
        timings.by_step["decode"][-1] += decoded_s - concluded_s
        core.drain_outbox()  # the Scheduled event
        self._on_bound(decoded)
        self.num_bound += 1
        if profiler is not None:
            profiler.enable()

    def _heartbeat(self, i: int) -> None:
        """A kubelet's report: conditions are newer, nothing that matters has changed."""
        self._heartbeats += 1
        row = i * 31 % len(self._nodes)
        old = self._nodes[row]
        raw = Template(cluster_node(row)).fill(NAME=old.name)
        new = _decoded(Node, raw.replace(b'"resourceVersion":"1"', b'"resourceVersion":"%d"' % (i + 2)))
        self._core.apply(Changed(old, new))
        self._nodes[row] = new


def _decoded(kind: type[Any], raw: bytes) -> Any:
    decoded = decode_object(kind, raw)
    assert isinstance(decoded, KubeObject), decoded
    return decoded


def _line(event: str, manifest: dict[str, Any]) -> Template:
    return Template({"type": event, "object": manifest})


def _bound(manifest: dict[str, Any]) -> dict[str, Any]:
    whole = as_served_pod(manifest, "uid-@NAME@", "200")
    whole["spec"]["nodeName"] = "@NODE@"
    whole["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
    return whole


def _figures(timings: Timings, num_pods: int) -> dict[str, Any]:
    decide_us = np.array(timings.by_step["decide"]) * 1e6
    assert len(decide_us) == num_pods, f"{len(decide_us)} decisions were timed, not {num_pods}"
    with_events = timings.mean_us("arrive", "decide", "conclude", "echo")
    with_decoding = with_events + timings.mean_us("decode")
    return {
        "decide_us_p50": round(float(np.percentile(decide_us, 50)), 1),
        "decide_us_p99": round(float(np.percentile(decide_us, 99)), 1),
        "decide_us_mean": round(float(decide_us.mean()), 1),
        "decide_cpu_us_mean": round(timings.decide_cpu_s / num_pods * 1e6, 1),
        "decisions_per_cpu_s": round(num_pods / timings.decide_cpu_s),
        "decisions_per_s": round(1e6 / float(decide_us.mean())),
        "with_events_per_s": round(1e6 / with_events),
        "with_decoding_per_s": round(1e6 / with_decoding),
        "steps_us": {step: round(timings.mean_us(step), 1) for step in STEPS},
    }


def _check(core: Core, case: Case, run: Bench, num_pods: int) -> None:
    wanted = num_pods if case.is_bound else 0
    if run.num_bound != wanted:
        raise InvalidRunError(f"case {case.letter}: {run.num_bound} of {wanted} pods were placed")
    for info in core.snapshot.infos:
        for name, amount in info.requested.items():
            if amount > info.allocatable.get(name, 0):
                raise InvalidRunError(f"node {info.name} is over-committed in {name}")
        if info.num_pods > info.allocatable["pods"]:
            raise InvalidRunError(f"node {info.name} has {info.num_pods} pods")


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def _profile_text(profiler: cProfile.Profile) -> str:
    lines: list[str] = []

    class _Lines:
        def write(self, text: str) -> None:
            lines.append(text)

    stats = pstats.Stats(profiler, stream=_Lines())  # type: ignore[arg-type]
    stats.strip_dirs().sort_stats("tottime").print_stats(25)
    return "".join(lines)
