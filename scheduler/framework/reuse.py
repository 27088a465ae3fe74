"""Reuse: the questions that the class cache asks the plugins of one profile.

Plugins that give a signature of the pod (``Plugin.node_signature``) are *local*: what they say of a node follows from
the node and the signature. All others are *coupled*; they must Skip for the pod, or nothing can be shared. A profile
with a coupled plugin that cannot Skip (a third party's Score without PreScore, say) shares nothing at all.

Changed nodes are judged by the plugins' per-node forms if they are few, which then cost less than columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scheduler.api import (
    MAX_NODE_SCORE,
    Code,
    CycleState,
    FilterPlugin,
    IntColumn,
    NodesView,
    Plugin,
    Pod,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from scheduler.framework.calls import Calls
from scheduler.framework.guard import PluginFault
from scheduler.framework.points import FILTER, NORMALIZE, PRE_FILTER, PRE_SCORE, SCORE

__all__ = ["Judgement", "Ranking", "ReusePoint"]

_POINT = "NodeSignature"
_FEW = 6


class Judgement(NamedTuple):
    """One node: whether the pod fits, and each local Score plugin's raw score (of no meaning where it does not fit)."""

    fits: bool
    raw: tuple[int, ...]


class Ranking(NamedTuple):
    """How one local Score plugin enters the total."""

    name: str
    weight: int
    normalizes: bool


class ReusePoint:
    """The plugins of one profile, parted into local and coupled ones.

    Attributes:
        is_available: whether pods of this profile can share anything.
    """

    def __init__(  # noqa: PLR0917  the points in their order
        self,
        pre_filter: Sequence[PreFilterPlugin],
        filter_: Sequence[FilterPlugin],
        pre_score: Sequence[PreScorePlugin],
        score: Sequence[ScorePlugin],
        weights: Mapping[str, int] | None,
        calls: Calls,
    ) -> None:
        self._calls = calls
        everybody: list[Plugin] = [*pre_filter, *filter_, *pre_score, *score]
        self._local = [p for p in dict.fromkeys(everybody) if is_local(p)]
        self._coupled_pre_filter = [p for p in pre_filter if not is_local(p)]
        self._coupled_pre_score = [p for p in pre_score if not is_local(p)]
        self._filters = [p for p in filter_ if is_local(p)]
        self._scorers = [(p, (weights or {}).get(p.name) or 1) for p in score if is_local(p)]
        cannot_skip: list[Plugin] = [p for p in filter_ if not is_local(p) and not isinstance(p, PreFilterPlugin)]
        cannot_skip += [p for p in score if not is_local(p) and not isinstance(p, PreScorePlugin)]
        self.is_available = not cannot_skip

    def key(self, pod: Pod) -> Hashable | None:
        """Return what the local plugins depend on; None if one of them cannot say."""
        try:
            return self._calls.guard.call("", _POINT, self._key, pod)
        except PluginFault:
            return None  # counted and logged by the guard

    def _key(self, pod: Pod) -> Hashable | None:
        signatures = [plugin.node_signature(pod) for plugin in self._local]
        return None if None in signatures else tuple(signatures)

    def is_apart(self, state: CycleState, pod: Pod, nodes: NodesView) -> bool:
        """Say whether every coupled plugin Skips, so that nothing but the pod and single nodes decides."""
        guard = self._calls.guard
        try:
            for plugin in self._coupled_pre_filter:
                answer: Any = guard.call(plugin.name, PRE_FILTER, plugin.pre_filter, state, pod, nodes)
                if not (isinstance(answer, tuple) and len(answer) == 2 and _is_skip(answer[1])):
                    return False
            return all(
                _is_skip(guard.call(plugin.name, PRE_SCORE, plugin.pre_score, state, pod, nodes))
                for plugin in self._coupled_pre_score
            )
        except PluginFault:
            return False  # the ordinary way meets the same fault and reports it

    def was_apart(self, state: CycleState) -> bool:
        """Say whether every coupled plugin has Skipped in the attempt that ``state`` is of."""
        return all(p.name in state.skip_filter_plugins for p in self._coupled_pre_filter) and all(
            p.name in state.skip_score_plugins for p in self._coupled_pre_score
        )

    def rankings(self, state: CycleState) -> list[Ranking]:
        """Return the local Score plugins that take part, in order."""
        return [
            Ranking(p.name, weight, type(p).normalize is not ScorePlugin.normalize)
            for p, weight in self._scorers
            if p.name not in state.skip_score_plugins
        ]

    def raw_scores(self, state: CycleState, pod: Pod, nodes: NodesView) -> list[IntColumn]:
        """Return each taking-part local Score plugin's raw scores of all rows.

        Raises:
            PluginFault: a plugin failed.
        """
        return [
            np.array(self._calls.guard.call(p.name, SCORE, p.score_all, state, pod, nodes), np.int64)
            for p in self._taking_part(state)
        ]

    def judge(self, state: CycleState, pod: Pod, nodes: NodesView) -> list[Judgement] | None:
        """Judge the nodes of a small view; None if a plugin fails, so that the ordinary way must report it.

        A few nodes are judged one by one, more of them by columns.
        """
        judge = self._judge_each if len(nodes) <= _FEW else self._judge_all
        try:
            return self._calls.guard.call("", FILTER, judge, state, pod, nodes)
        except PluginFault:
            return None

    def _judge_each(self, state: CycleState, pod: Pod, nodes: NodesView) -> list[Judgement] | None:
        filters = [p for p in self._filters if p.name not in state.skip_filter_plugins]
        scorers = self._taking_part(state)
        judged: list[Judgement] = []
        for node in nodes.infos:
            fits = True
            for plugin in filters:
                status = plugin.filter(state, pod, node)
                if status is not None and status.code is not Code.SUCCESS:
                    if not status.is_rejected:
                        return None
                    fits = False
                    break
            judged.append(Judgement(fits, tuple(p.score(state, pod, node) for p in scorers)))
        return judged

    def _judge_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> list[Judgement] | None:
        fits = np.ones(len(nodes), np.bool_)
        for plugin in self._filters:
            if plugin.name not in state.skip_filter_plugins:
                verdicts = plugin.filter_all(state, pod, nodes)
                if verdicts.errors is not None and verdicts.errors.any():
                    return None
                fits &= verdicts.ok
        columns = [p.score_all(state, pod, nodes).tolist() for p in self._taking_part(state)]
        scores = zip(*columns, strict=True) if columns else iter([()] * len(nodes))
        return [Judgement(fit, tuple(raw)) for fit, raw in zip(fits.tolist(), scores, strict=True)]

    def normalize(
        self, name: str, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn
    ) -> IntColumn | None:
        """Return one plugin's normalized scores of the feasible ``nodes``; None if it fails or leaves 0..100."""
        plugin = next(p for p, _ in self._scorers if p.name == name)
        try:
            normalized = self._calls.guard.call(name, NORMALIZE, plugin.normalize, state, pod, nodes, scores)
        except PluginFault:
            return None
        return normalized if are_in_range(normalized) else None

    def _taking_part(self, state: CycleState) -> list[ScorePlugin]:
        return [p for p, _ in self._scorers if p.name not in state.skip_score_plugins]


def is_local(plugin: Plugin) -> bool:
    """Say whether the plugin gives a signature."""
    return type(plugin).node_signature is not Plugin.node_signature


def are_in_range(scores: IntColumn) -> bool:
    """Say whether all scores lie in 0..100."""
    return not len(scores) or (int(scores.min()) >= 0 and int(scores.max()) <= MAX_NODE_SCORE)


def _is_skip(status: Status | None) -> bool:
    return status is not None and status.code is Code.SKIP
