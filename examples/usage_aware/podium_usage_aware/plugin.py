"""UsageAware: nodes score by how much of their CPU is really in use.

A Prometheus server is asked in the background. What it says lags behind: a pod that was placed since then is not in it
yet, and a hundred pods would all go to the node that was idle a minute ago. So the requests of pods placed lately count
as if they were in use, until the figures can show them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from podium_usage_aware.prometheus import QueryError, query_by_node
from scheduler.api import (
    MAX_NODE_SCORE,
    CycleState,
    Handle,
    NodesView,
    NodeView,
    PluginArgs,
    Pod,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
)

__all__ = ["UsageAware", "UsageAwareArgs"]

_log = logging.getLogger(__name__)
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_NODE_EXPORTER = '1 - avg by (node) (rate(node_cpu_seconds_total{mode="idle"}[2m]))'


class UsageAwareArgs(PluginArgs):
    """What ``pluginConfig`` may say.

    Attributes:
        prometheus_url: of the server, without ``/api/v1``.
        query: an instant query; its value is the part of a node's CPU that is in use, 0 to 1.
        node_label: the label of the query's answer that holds the node's name.
        refresh_seconds: how often it is asked.
        stale_after_seconds: figures older than this count for nothing.
        settle_seconds: so long after a pod was placed the figures show it.
        timeout_seconds: longest wait for the server.
    """

    prometheus_url: Annotated[str, msgspec.Meta(pattern="^https?://[^/]")]
    query: str = _NODE_EXPORTER
    node_label: str = "node"
    refresh_seconds: Annotated[float, msgspec.Meta(ge=0.1)] = 15.0
    stale_after_seconds: _Positive = 300.0
    settle_seconds: Annotated[float, msgspec.Meta(ge=0)] = 120.0
    timeout_seconds: _Positive = 5.0


@dataclass(frozen=True, slots=True)
class _Placed:
    node: str
    cpu_milli: int
    at_s: float


class UsageAware(PreScorePlugin, ScorePlugin, ReservePlugin):
    """See the module."""

    name = "UsageAware"
    api_version = 1
    Args = UsageAwareArgs

    def __init__(self, args: UsageAwareArgs, handle: Handle) -> None:
        """Make it; the first figures come soon."""
        self._args = args
        self._handle = handle
        self._usage: Mapping[str, float] = {}
        self._asked_at_s: float | None = None
        self._placed: dict[str, _Placed] = {}
        self._extra_milli: dict[str, int] = {}
        metrics = handle.metrics
        self._queries = metrics.counter("usage_aware_queries_total", "Queries to Prometheus, by result.", ["result"])
        self._nodes = metrics.gauge(
            "usage_aware_nodes", "Nodes whose use is known; 0 while there are no fresh figures."
        )
        handle.run_in_background(self._refresh, every_s=args.refresh_seconds)

    # --- in the background -------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        args = self._args
        try:
            usage = query_by_node(args.prometheus_url, args.query, args.node_label, args.timeout_seconds)
        except QueryError as error:
            self._queries.labels("failed").inc()
            _log.warning("node usage is not known: %s", error)
            self._handle.call_soon_threadsafe(lambda: self._take(None))
        else:
            self._queries.labels("ok" if usage else "empty").inc()
            self._handle.call_soon_threadsafe(lambda: self._take(usage))

    # --- between two decisions ---------------------------------------------------------------------------------------

    def _take(self, usage: Mapping[str, float] | None) -> None:
        now_s = self._handle.clock.now()
        if usage:
            self._usage, self._asked_at_s = usage, now_s
        elif self._asked_at_s is not None and now_s - self._asked_at_s >= self._args.stale_after_seconds:
            self._usage = {}
        self._nodes.set(len(self._usage))
        settled_s = now_s - self._args.settle_seconds
        self._placed = {uid: placed for uid, placed in self._placed.items() if placed.at_s > settled_s}
        self._extra_milli = {}
        for placed in self._placed.values():
            self._extra_milli[placed.node] = self._extra_milli.get(placed.node, 0) + placed.cpu_milli

    # --- decisions ---------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        """Step aside without fresh figures."""
        del state, pod, nodes
        return None if self._usage else Status.skip()

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """Return the percentage that is free; nodes of which nothing is known get the middle."""
        del state, pod
        usage = self._usage.get(node.name)
        if usage is None:
            return MAX_NODE_SCORE // 2
        extra = self._extra_milli.get(node.name, 0) / max(node.allocatable.get("cpu", 0), 1)
        return round(MAX_NODE_SCORE * (1 - min(max(usage + extra, 0.0), 1.0)))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Count the pod's request until the figures show it."""
        del state
        placed = self._placed[pod.uid] = _Placed(node_name, pod.requests.get("cpu", 0), self._handle.clock.now())
        self._extra_milli[node_name] = self._extra_milli.get(node_name, 0) + placed.cpu_milli
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Take it back: the pod was not bound."""
        del state
        placed = self._placed.pop(pod.uid, None)
        if placed is not None:
            self._extra_milli[node_name] -= placed.cpu_milli
