"""PreScore, Score, NormalizeScore: how good the feasible nodes are.

``total = Σ weight · normalized score``; normalized scores lie in 0..100, anything else fails the attempt. Columns hold
one number a feasible node, int16 where that is wide enough: at 65,000 nodes the bytes are what costs. Weighted scores
by plugin are made on request only (explain, simulate).
Source: ``RunPreScorePlugins``, ``RunScorePlugins`` in ``framework/runtime/framework.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api import (
    MAX_NODE_SCORE,
    Code,
    CycleState,
    IntColumn,
    NodesView,
    Pod,
    PreScorePlugin,
    ScoreColumn,
    ScorePlugin,
    Status,
)
from scheduler.framework.calls import Calls, failed
from scheduler.framework.columns import are_in_range, as_int_column, as_score_column, totals_type
from scheduler.framework.guard import PluginFault, code_name
from scheduler.framework.points import NORMALIZE, PRE_SCORE, SCORE
from scheduler.framework.standing import Answers, KeptScores

__all__ = ["PluginScores", "ScorePoint", "Scores"]

_PRE_SCORE_WORDING = 'running PreScore plugin "%s"'
_SCORE_WORDING = 'running Score plugins: plugin "%s" failed with'
_NORMALIZE_WORDING = 'running Normalize on Score plugins: plugin "%s" failed with'

_NOTHING: Mapping[str, KeptScores] = {}
_NOBODY: Mapping[str, object] = {}

PluginScores = tuple[str, int, ScoreColumn]
"""Plugin, weight, and its normalized scores of all feasible nodes before weighting."""


class Scores:
    """The scores of one attempt; row ``i`` of every column is ``nodes.names[i]``.

    Attributes:
        nodes: the feasible nodes.
        by_plugin: the columns that went into ``totals``, in plugin order.
        totals: weighted sums.
    """

    __slots__ = ("by_plugin", "nodes", "totals")

    def __init__(self, nodes: NodesView, by_plugin: list[PluginScores], totals: ScoreColumn) -> None:
        self.nodes = nodes
        self.by_plugin = by_plugin
        self.totals = totals

    def weighted(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield each plugin with its weighted score by node name."""
        names = self.nodes.names
        for plugin, weight, scores in self.by_plugin:
            yield plugin, dict(zip(names, (scores.astype(np.int64) * weight).tolist(), strict=True))


class _Entry(NamedTuple):
    plugin: ScorePlugin
    name: str
    weight: int
    factor: ScoreColumn  # the weight once more, in the form that numpy multiplies with fastest
    is_whole_cluster: bool
    normalizes: bool
    evaluated: Callable[[int], None]


class ScorePoint:
    """The PreScore and Score plugins of one profile, in order.

    Attributes:
        plugins: the Score plugins.
        is_whole_cluster: whether every Score plugin has a whole-cluster form of its own.
    """

    __slots__ = ("_calls", "_entries", "_pre_entries", "_totals_type", "is_whole_cluster", "plugins")

    def __init__(
        self,
        pre_score: Sequence[PreScorePlugin],
        score: Sequence[ScorePlugin],
        weights: Mapping[str, int],
        calls: Calls,
    ) -> None:
        self.plugins = tuple(score)
        self._calls = calls
        counter, profile = calls.metrics.evaluation_counter, calls.profile
        self._pre_entries = [(p, p.name, counter(p.name, PRE_SCORE, profile)) for p in pre_score]
        self._totals_type = kind = totals_type(weights.get(p.name) or 1 for p in score)
        self._entries = [
            _Entry(
                plugin=p,
                name=p.name,
                weight=weights.get(p.name) or 1,
                factor=np.array(weights.get(p.name) or 1, kind),
                is_whole_cluster=type(p).score_all is not ScorePlugin.score_all,
                normalizes=type(p).normalize is not ScorePlugin.normalize,
                evaluated=counter(p.name, SCORE, profile),
            )
            for p in score
        ]
        self.is_whole_cluster = all(entry.is_whole_cluster for entry in self._entries)

    def run_pre_score(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> Status | None:
        """Run the PreScore plugins that ``answers`` do not cover over the feasible nodes; fills
        ``state.skip_score_plugins``.
        """
        started_s = self._calls.perf_counter()
        try:
            status = self._run_pre_score(state, pod, nodes, answers)
        except PluginFault as fault:
            status = fault.status(_PRE_SCORE_WORDING)
        self._calls.observe(PRE_SCORE, status, started_s)
        return status

    def _run_pre_score(self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None) -> Status | None:
        guard = self._calls.guard
        covered: Mapping[str, object] = answers.covered if answers is not None else _NOBODY
        skipped = answers.state.skip_score_plugins.copy() if answers is not None else set()
        state.skip_score_plugins = skipped
        if answers is not None:
            state.take(answers.prepared_scores)
        for plugin, name, count in self._pre_entries:
            if name in covered:
                if name not in skipped:
                    count(1)
                continue
            answer = guard.call(name, PRE_SCORE, plugin.pre_score, state, pod, nodes)
            status = None if answer is None else guard.status(name, PRE_SCORE, answer)
            if state.record_plugin_metrics:
                self._calls.metrics.plugin_duration(PRE_SCORE, name, code_name(status), guard.last_s)
            if status is not None:
                if status.code is not Code.SKIP:
                    return failed(_PRE_SCORE_WORDING % name, name, status)
                skipped.add(name)
                continue
            count(1)
        return None

    def run_score(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> Scores | Status:
        """Score, normalize, weigh and add; returns an Error if a plugin fails or leaves 0..100.

        ``answers`` spare calls if they are about these very ``nodes``.
        """
        started_s = self._calls.perf_counter()
        result = self._run_score(state, pod, nodes, answers)
        self._calls.observe(SCORE, result if isinstance(result, Status) else None, started_s)
        return result

    def _run_score(self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None) -> Scores | Status:
        size = len(nodes)
        totals: ScoreColumn | None = None
        kind = self._totals_type
        by_plugin: list[PluginScores] = []
        skipped = state.skip_score_plugins
        known = _NOTHING
        if answers is not None and answers.nodes is nodes:
            known, totals = answers.scores, answers.weighted.copy()
        for entry in self._entries:
            if entry.name in skipped:
                continue
            entry.evaluated(size)
            kept = known.get(entry.name)
            if kept is not None:
                by_plugin.append((entry.name, entry.weight, kept.normalized))
                continue
            scores = self._final_scores(entry, state, pod, nodes)
            if scores is None:
                continue
            if isinstance(scores, Status):
                return scores
            by_plugin.append((entry.name, entry.weight, scores))
            if scores.dtype is not kind:
                scores = scores.astype(kind)
            if totals is None:
                totals = scores * entry.factor
            else:
                totals += scores if entry.weight == 1 else scores * entry.factor
        return Scores(nodes, by_plugin, np.zeros(size, kind) if totals is None else totals)

    def _final_scores(
        self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView
    ) -> ScoreColumn | Status | None:
        """Return one plugin's scores, normalized and checked; an Error if it fails; None if its shield gave it up."""
        try:
            scores: ScoreColumn = self._ask(entry, state, pod, nodes)
        except PluginFault as fault:
            return fault.status(_SCORE_WORDING)
        if not entry.is_whole_cluster and entry.name in state.skip_score_plugins:  # given up half-way by its shield
            return None
        if entry.normalizes:
            try:
                scores = self._normalize(entry, state, pod, nodes, scores)
            except PluginFault as fault:
                return fault.status(_NORMALIZE_WORDING)
        return scores if are_in_range(scores) else _out_of_range(entry.name, scores)

    def _ask(self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView) -> ScoreColumn:
        guard, name = self._calls.guard, entry.name
        if entry.is_whole_cluster:
            answer: object = guard.call(name, SCORE, entry.plugin.score_all, state, pod, nodes)
            scores = as_score_column(answer, len(nodes))
            if scores is None:
                raise guard.bad_answer(name, SCORE, answer, f"one int64 for each of {len(nodes)} nodes")
        else:
            scores = self._ask_each(entry, state, pod, nodes)
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(SCORE, name, "Success", guard.last_s)
        return scores

    def _ask_each(self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        guard, function = self._calls.guard, entry.plugin.score

        def ask() -> list[object]:
            return [function(state, pod, node) for node in nodes.infos]

        answers = guard.call(entry.name, SCORE, ask)
        for answer in answers:
            if not isinstance(answer, int | np.integer) or not -(2**63) <= answer < 2**63:
                raise guard.bad_answer(entry.name, SCORE, answer, "an int that fits int64")
        return np.array(answers, np.int64)

    def _normalize(self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView, raw: ScoreColumn) -> IntColumn:
        guard, name = self._calls.guard, entry.name
        scores: IntColumn = raw.astype(np.int64, copy=False)
        answer: object = guard.call(name, NORMALIZE, entry.plugin.normalize, state, pod, nodes, scores)
        normalized = as_int_column(answer, len(nodes))
        if normalized is None:
            raise guard.bad_answer(name, NORMALIZE, answer, f"one int64 for each of {len(nodes)} nodes")
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(NORMALIZE, name, "Success", guard.last_s)
        return normalized


def _out_of_range(plugin: str, scores: ScoreColumn) -> Status:
    value = int(next(score for score in scores.tolist() if not 0 <= score <= MAX_NODE_SCORE))
    text = (
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {value}, '
        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
    )
    return Status.error(text).by(plugin)
