"""Feasible: the nodes that the pod can run on.

    PreFilter ─▶ nominated node alone ─▶ candidates (all, or those PreFilter named) ─▶ Filter ─▶ extenders

How much of the cluster is looked at: all of it, unless a percentage is configured or plugins without a whole-cluster
form make looking expensive; then the search goes round the cluster from where the last one stopped, and stops at the
first node beyond the wanted number (upstream does the same with 16 threads, where the stop is a matter of luck).
Source: ``findNodesThatFitPod`` in ``pkg/scheduler/schedule_one.go``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.api import NodesView, Status
from scheduler.cycle.attempt import Attempt, Searched
from scheduler.framework.extender import ExtenderError
from scheduler.framework.points import FILTER
from scheduler.framework.prefilter import PreFilterOutcome
from scheduler.framework.runtime import EXTENDER, Framework
from scheduler.telemetry.logging import get_logger

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["MIN_FEASIBLE_NODES_TO_FIND", "NOT_NAMED", "all_rows", "find_feasible", "num_nodes_to_find"]

NOT_NAMED = "node(s) didn't satisfy plugin(s) [{}]"
"""Reason of a node that PreFilter plugins left out, with their names."""

MIN_FEASIBLE_NODES_TO_FIND = 100
_MIN_PERCENTAGE = 5

_log = get_logger(__name__)


def find_feasible(engine: Scheduler, attempt: Attempt) -> Status | None:
    """Fill in the feasible rows and why the others are not; returns an Error if the attempt cannot go on."""
    outcome = attempt.framework.run_pre_filter(attempt.state, attempt.pod, attempt.nodes, attempt.answers)
    attempt.pre_filter = outcome
    if outcome.narrowed_by:
        attempt.diagnosis.unschedulable_plugins.update(outcome.narrowed_by)
    if outcome.status is not None:
        if not outcome.status.is_rejected:
            return outcome.status
        attempt.diagnosis.reject_all(outcome.status)
        return None
    if attempt.pod.status.nominated_node_name and _fits_nominated_node(engine, attempt):
        return None
    candidates = _candidates(attempt, outcome)
    started_s = engine.perf_counter()
    status = _search(engine, attempt, candidates)
    attempt.framework.observe(FILTER, status, started_s)
    if status is None and engine.extenders:
        return _ask_extenders(engine, attempt)
    return status


def num_nodes_to_find(engine: Scheduler, framework: Framework, num_candidates: int) -> int:
    """Return after how many feasible nodes the search may stop; ``num_candidates`` means: look at all.

    differs: 0 or no percentage means all nodes as long as looking at all is cheap (decision percentageOfNodesToScore).
    """
    if not framework.has_score_plugins and not any(e.is_prioritizer or e.is_filter for e in engine.extenders):
        return 1
    if num_candidates < MIN_FEASIBLE_NODES_TO_FIND:
        return num_candidates
    percentage = framework.percentage_of_nodes_to_score
    if percentage is None:
        percentage = engine.configuration.percentage_of_nodes_to_score
    if percentage == 0:
        if framework.is_whole_cluster:
            return num_candidates
        percentage = max(50 - num_candidates // 125, _MIN_PERCENTAGE)
    return max(num_candidates * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


@lru_cache(maxsize=4)
def all_rows(size: int) -> NDArray[np.intp]:
    """Return 0..size-1, read-only."""
    rows = np.arange(size, dtype=np.intp)
    rows.flags.writeable = False
    return rows


def _fits_nominated_node(engine: Scheduler, attempt: Attempt) -> bool:
    """Try the node that an earlier attempt chose alone: it is likely the only one, and was made free for this pod."""
    name, nodes = attempt.pod.status.nominated_node_name, attempt.nodes
    row = nodes.row(name)
    if row is None:
        _log.warning("nominated node does not exist", pod=attempt.pod.pod_key, node=name)
        return False
    started_s = engine.perf_counter()
    status = attempt.framework.run_filter_on_node_with_nominated_pods(attempt.state, attempt.pod, nodes.infos[row])
    attempt.framework.observe(FILTER, status, started_s)
    if status is not None:
        if status.is_rejected:
            attempt.diagnosis.set_node(name, status)
        else:
            # parity: the error is logged and all nodes are tried; if it persists, it comes up there again.
            _log.error("evaluation of nominated node failed", pod=attempt.pod.pod_key, node=name, error=status.message)
        return False
    attempt.feasible = np.array([row], np.intp)
    if engine.extenders:
        failure = _ask_extenders(engine, attempt)
        if failure is not None:
            _log.error("evaluation of nominated node failed", pod=attempt.pod.pod_key, node=name, error=failure.message)
            attempt.feasible = attempt.feasible[:0]
    attempt.is_nominated_first = bool(len(attempt.feasible))
    attempt.num_evaluated = 1
    return attempt.is_nominated_first


def _candidates(attempt: Attempt, outcome: PreFilterOutcome) -> NDArray[np.intp] | None:
    """Return the rows that PreFilter named and that exist, in row order; None for all."""
    if outcome.node_names is None:
        return None
    # parity: plugins that rejected the nominated node before are named too.
    names = " ".join(sorted(attempt.diagnosis.unschedulable_plugins))
    attempt.diagnosis.absent_status = Status.unresolvable(NOT_NAMED.format(names))
    rows = (attempt.nodes.row(name) for name in outcome.node_names)
    return np.array(sorted(row for row in rows if row is not None), np.intp)


def _search(engine: Scheduler, attempt: Attempt, candidates: NDArray[np.intp] | None) -> Status | None:
    framework, nodes = attempt.framework, attempt.nodes
    view = nodes if candidates is None else nodes.take(candidates)
    size = len(view)
    wanted = num_nodes_to_find(engine, framework, size)
    if wanted >= size and framework.has_filter_plugins:
        status, num_visited = _look_at_all(attempt, view, candidates), size
    else:
        order = (np.arange(size, dtype=np.intp) + engine.next_start_node_index) % max(size, 1)
        status, num_visited = _go_round(attempt, view, candidates, order, wanted)
    attempt.num_evaluated = num_visited
    engine.next_start_node_index = (engine.next_start_node_index + num_visited) % len(nodes)
    return status


def _look_at_all(attempt: Attempt, view: NodesView, candidates: NDArray[np.intp] | None) -> Status | None:
    outcome = attempt.framework.run_filter(attempt.state, attempt.pod, view, attempt.answers)
    if isinstance(outcome, Status):
        return outcome
    _record(attempt, Searched(outcome, candidates, None))
    if candidates is not None:
        attempt.feasible = candidates[outcome.ok]
    elif np.count_nonzero(outcome.ok) == len(view):
        attempt.feasible = all_rows(len(view))
    else:
        attempt.feasible = outcome.ok.nonzero()[0]
    return None


def _go_round(
    attempt: Attempt, view: NodesView, candidates: NDArray[np.intp] | None, order: NDArray[np.intp], wanted: int
) -> tuple[Status | None, int]:
    """Look at the candidates in this order until ``wanted`` are found; returns how many were looked at.

    Plugins that work on columns judge everything at once, which costs no more than a part; others are asked block by
    block, so that they are called about as often as needed.
    """
    framework, size = attempt.framework, len(order)
    if not framework.has_filter_plugins:
        first = order[:wanted]
        attempt.feasible = first if candidates is None else candidates[first]
        return None, len(first)
    found: list[NDArray[np.intp]] = []
    num_found, begin, length = 0, 0, size if framework.is_whole_cluster else wanted + 1
    while begin < size and num_found <= wanted:
        block = order[begin : begin + length]
        outcome = framework.run_filter(attempt.state, attempt.pod, view.take(block))
        if isinstance(outcome, Status):
            return outcome, begin
        passed = np.flatnonzero(outcome.ok)
        num_visited = len(block)
        if num_found + len(passed) > wanted:
            num_visited = int(passed[wanted - num_found])  # the first node beyond the wanted number ends the search
            passed = passed[: wanted - num_found]
            size = begin + num_visited
        rows = block if candidates is None else candidates[block]
        _record(attempt, Searched(outcome, rows, np.arange(len(block)) < num_visited))
        found.append(rows[passed])
        num_found += len(passed)
        begin, length = begin + num_visited, length * 2
    attempt.feasible = np.concatenate(found) if found else attempt.feasible
    return None, begin


def _record(attempt: Attempt, part: Searched) -> None:
    attempt.searched.append(part)
    # The nominated node failed on its own; where the search looks at it again, the newer verdict stands.
    name = attempt.pod.status.nominated_node_name
    if name and (row := attempt.nodes.row(name)) is not None and (part.rows is None or row in part.rows):
        attempt.diagnosis.forget_node(name)


def _ask_extenders(engine: Scheduler, attempt: Attempt) -> Status | None:
    """Let the extenders strike nodes off, one after the other."""
    num_before = len(attempt.feasible)
    for extender in engine.extenders:
        if not len(attempt.feasible):
            break
        if not extender.is_interested(attempt.pod):
            continue
        try:
            verdict = extender.filter(attempt.pod, attempt.nodes.take(attempt.feasible))
        except ExtenderError as error:
            if not extender.is_ignorable:
                return Status.error(str(error), error)
            _log.warning("ignorable extender failed", extender=extender.name, error=str(error))
            continue
        for name, reason in verdict.failed.items():
            attempt.diagnosis.set_node(name, Status.unschedulable(reason))
        for name, reason in verdict.unresolvable.items():
            attempt.diagnosis.set_node(name, Status.unresolvable(reason))
        rows = [attempt.nodes.row(name) for name in verdict.kept]
        attempt.feasible = np.array([row for row in rows if row is not None], np.intp)
    if len(attempt.feasible) != num_before:
        attempt.diagnosis.unschedulable_plugins.add(EXTENDER)
    return None
