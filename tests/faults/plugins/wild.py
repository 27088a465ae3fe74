"""Plugins of a third party that do every wrong thing, where a pod's labels ask for it.

This file is copied into a distribution of its own, found through the entry-point group, and runs inside the daemon; it
imports nothing but the public interface.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scheduler.api import (
    BindPlugin,
    CycleState,
    EventRegistration,
    Handle,
    NodesView,
    PermitPlugin,
    Pod,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Verdicts,
)
from scheduler.api import FilterPlugin as _FilterPlugin

RAISES = "raises"
SAYS = "says"
HANGS = "hangs"


class Raising(
    QueueSortPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    _FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    """Every extension point: raises for pods labelled `raises: POINT`, so often as the arguments say, then no more."""

    name = "Raising"

    def __init__(self, args: Any, handle: Handle) -> None:
        del handle
        self._times = int((args or {}).get("times", 2))
        self._raised: Counter[str] = Counter()

    def _at(self, point: str, pod: Pod) -> None:
        if pod.metadata.labels.get(RAISES) == point:
            self._raised[pod.metadata.uid] += 1
            if self._raised[pod.metadata.uid] <= self._times:
                raise RuntimeError(f"wild at {point}")

    def events(self) -> Sequence[EventRegistration] | None:
        return None

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, info: QueuedPodInfo) -> Any:
        self._at("QueueSort", info.pod)
        return (-info.pod.priority, info.timestamp_s)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self._at("PreEnqueue", pod)
        return None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        self._at("PreFilter", pod)
        return None, None

    def filter(self, state: CycleState, pod: Pod, node: Any) -> Status | None:
        self._at("Filter", pod)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        self._at("Filter", pod)
        return super().filter_all(state, pod, nodes)

    def post_filter(self, state: CycleState, pod: Pod, statuses: Any) -> tuple[PostFilterResult | None, Status | None]:
        self._at("PostFilter", pod)
        return None, Status.unschedulable("nothing to be done")

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        self._at("PreScore", pod)
        return None

    def score(self, state: CycleState, pod: Pod, node: Any) -> int:
        return 1

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Any:
        self._at("Score", pod)
        return super().score_all(state, pod, nodes)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self._at("Reserve", pod)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        return None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        self._at("Permit", pod)
        return None, 0.0

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self._at("PreBind", pod)
        return None

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self._at("Bind", pod)
        return Status.skip()

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._at("PostBind", pod)


class Talking(PreFilterPlugin, _FilterPlugin, ScorePlugin, PermitPlugin):
    """Answers what nobody can use for pods labelled `says: WHAT`."""

    name = "Talking"

    def __init__(self, args: Any, handle: Handle) -> None:
        del args, handle

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> Any:
        match pod.metadata.labels.get(SAYS):
            case "unknown-node":
                return PreFilterResult(frozenset(["nowhere"])), None
            case "list-of-nodes":
                return PreFilterResult(["good"]), None  # type: ignore[arg-type]
            case "no-pair":
                return "yes"
        return None, None

    def filter(self, state: CycleState, pod: Pod, node: Any) -> Any:
        match pod.metadata.labels.get(SAYS):
            case "true":
                return True
            case "wait-in-filter":
                return Status.wait()
        return None

    def score(self, state: CycleState, pod: Pod, node: Any) -> Any:
        answers = {"huge": 10**18, "beyond-int64": 10**30, "nan": float("nan"), "negative": -1, "text": "best"}
        answers |= {"nothing": None, "fraction": 1.5}
        return answers.get(pod.metadata.labels.get(SAYS, ""), 1)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        answers = {"permit-nan": (Status.wait(), float("nan")), "permit-text": "yes"}
        answers |= {"permit-forever": (Status.wait(), float("inf")), "permit-past": (Status.wait(), -5.0)}
        return answers.get(pod.metadata.labels.get(SAYS, ""), (None, 0.0))


class Hanging(_FilterPlugin, ScorePlugin, PreBindPlugin):
    """Never comes back for a pod labelled `hangs: POINT`, but only in the first process that meets it.

    A file in the arguments' `directory` tells later ones that it has happened.
    """

    name = "Hanging"

    def __init__(self, args: Any, handle: Handle) -> None:
        del handle
        self._directory = Path(args["directory"])

    def _at(self, point: str, pod: Pod) -> None:
        if pod.metadata.labels.get(HANGS) != point:
            return
        been_here = self._directory / f"{pod.name}.hung"
        if not been_here.exists():
            been_here.write_text(point)
            time.sleep(1e9)

    def filter(self, state: CycleState, pod: Pod, node: Any) -> Status | None:
        self._at("Filter", pod)
        return None

    def score(self, state: CycleState, pod: Pod, node: Any) -> int:
        self._at("Score", pod)
        return 1

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self._at("PreBind", pod)
        return None
