"""Score: ranks the feasible nodes with plugins and extenders. Source: ``prioritizeNodes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.api import MAX_NODE_SCORE, NodesView, Status
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.feasible import all_rows
from scheduler.framework.extender import MAX_EXTENDER_PRIORITY, Extender, ExtenderError
from scheduler.framework.scoring import Scores
from scheduler.telemetry.logging import get_logger

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["score_feasible"]

_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY

_log = get_logger(__name__)


def score_feasible(engine: Scheduler, attempt: Attempt) -> Status | None:
    """Fill in the scores of the feasible nodes; returns an Error if a plugin fails."""
    framework, state, pod = attempt.framework, attempt.state, attempt.pod
    nodes = attempt.nodes
    # All rows in row order are the snapshot itself, whose columns need no gathering.
    view = nodes if len(attempt.feasible) == len(nodes) else nodes.take(attempt.feasible)
    if view is nodes:
        attempt.feasible = all_rows(len(nodes))
    if not engine.extenders and not framework.has_score_plugins:
        attempt.scores = Scores(view, [], np.ones(len(view), np.int64))
        return None
    status = framework.run_pre_score(state, pod, view, attempt.answers)
    if status is not None:
        return status
    scores = framework.run_score(state, pod, view, attempt.answers)
    if isinstance(scores, Status):
        return scores
    attempt.scores = scores
    for extender in engine.extenders:
        if extender.is_interested(pod):
            _add_extender(attempt, scores, extender, view)
    return None


def _add_extender(attempt: Attempt, scores: Scores, extender: Extender, view: NodesView) -> None:
    try:
        by_host, weight = extender.prioritize(attempt.pod, view)
    except ExtenderError as error:
        # parity: the other scores are good enough.
        _log.warning("extender gave no scores", extender=extender.name, pod=attempt.pod.pod_key, error=str(error))
        return
    column = np.zeros(len(view), np.int64)
    for host, score in by_host.items():
        row = view.row(host)
        if row is not None:
            column[row] += score
    # parity: absurd scores and weights wrap round, as int64 does in Go; columns do so by themselves.
    factor = (weight * _SCALE + 2**63) % 2**64 - 2**63
    scores.by_plugin.append((extender.name, factor, column))
    scores.totals = scores.totals + column * factor  # as int64
