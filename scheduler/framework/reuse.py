"""Reuse: the questions that the class cache asks the plugins of one profile.

Plugins that give a signature of the pod (``Plugin.node_signature``) are *local*: what they say of a node follows from
the node and the signature. All others are *coupled* (``framework.coupled``) and are asked in every attempt. A profile
with a coupled plugin that cannot Skip (a third party's Score without PreScore, say) shares nothing at all.

A plugin may be local for some pods and coupled for others: it is coupled for those to which it gives no signature, and
must then Skip.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar, TypeVarTuple

import numpy as np

from scheduler.api import (
    BoolColumn,
    Code,
    CycleState,
    FilterPlugin,
    IntColumn,
    NodesView,
    NodeView,
    Plugin,
    Pod,
    PreFilterPlugin,
    PreScorePlugin,
    ScoreColumn,
    ScorePlugin,
    Status,
)
from scheduler.framework.calls import Calls
from scheduler.framework.columns import are_in_range, as_int_column
from scheduler.framework.coupled import Coupled, is_local
from scheduler.framework.guard import PluginFault
from scheduler.framework.points import FILTER, NORMALIZE
from scheduler.framework.scoring import PluginScores
from scheduler.framework.standing import is_standing

__all__ = ["Judge", "Ranking", "ReusePoint"]

_POINT = "NodeSignature"

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


class Ranking(NamedTuple):
    """How one local Score plugin enters the total."""

    name: str
    weight: int
    normalizes: bool
    reads_pods: bool


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
        local = [p for p in dict.fromkeys(everybody) if is_local(p)]
        self._moving = [p for p in local if not is_standing(p)]
        self._local = [p for p in local if is_standing(p)] + self._moving
        self._pre_filter, self._pre_score = tuple(pre_filter), tuple(pre_score)
        self._all_filters = tuple(filter_)
        self._all_scorers = [(p, (weights or {}).get(p.name) or 1) for p in score]
        self._score_order = {p.name: place for place, p in enumerate(score)}
        self._filters = [p for p in filter_ if is_local(p)]
        self._scorers = [(p, weight) for p, weight in self._all_scorers if is_local(p)]
        cannot_skip: list[Plugin] = [p for p in filter_ if not isinstance(p, PreFilterPlugin)]
        cannot_skip += [p for p in score if not isinstance(p, PreScorePlugin)]
        self._cannot_skip = frozenset(p for p in cannot_skip if is_local(p))
        self.is_available = len(self._cannot_skip) == len(set(cannot_skip))

    def key(self, standing: tuple[Hashable | None, ...], pod: Pod) -> tuple[Hashable | None, ...] | None:
        """Return what the local plugins depend on, None for each that cannot say; None if one of those cannot Skip.

        ``standing`` are the signatures of the plugins that do not read pods (``StandingPoint.key``).
        """
        try:
            return self._calls.guard.call("", _POINT, self._key, standing, pod)
        except PluginFault:
            return None  # counted and logged by the guard

    def _key(self, standing: tuple[Hashable | None, ...], pod: Pod) -> tuple[Hashable | None, ...] | None:
        signatures = standing + tuple([plugin.node_signature(pod) for plugin in self._moving])
        if None not in signatures:
            return signatures
        silent = {plugin for plugin, signature in zip(self._local, signatures, strict=True) if signature is None}
        return None if silent & self._cannot_skip else signatures

    def coupled(self, key: Sequence[Hashable | None]) -> Coupled:
        """Return the plugins that must be asked in each attempt for pods of this key."""
        local = {plugin for plugin, signature in zip(self._local, key, strict=True) if signature is not None}
        must_skip = {p.name for p in self._local if p not in local}
        must_skip |= {p.name for p in self._all_filters if type(p).filter_all is FilterPlugin.filter_all}
        must_skip |= {p.name for p, _ in self._all_scorers if type(p).score_all is ScorePlugin.score_all}
        return Coupled(
            [p for p in self._pre_filter if p not in local],
            [p for p in self._all_filters if p not in local],
            [p for p in self._pre_score if p not in local],
            [(p, weight) for p, weight in self._all_scorers if p not in local],
            frozenset(must_skip),
        )

    def local_state(self, key: Sequence[Hashable | None], pod: Pod, nodes: NodesView) -> CycleState | None:
        """Return what the local plugins' PreFilter and PreScore write for this key; None if one has more to say."""
        state = CycleState()
        local = {plugin for plugin, signature in zip(self._local, key, strict=True) if signature is not None}
        for plugin in self._pre_filter:
            if plugin in local:
                result, status = plugin.pre_filter(state, pod, nodes)
                if not _goes_on(plugin.name, status, state.skip_filter_plugins) or result is not None:
                    return None
            else:
                state.skip_filter_plugins.add(plugin.name)
        for scorer in self._pre_score:
            if scorer in local:
                if not _goes_on(scorer.name, scorer.pre_score(state, pod, nodes), state.skip_score_plugins):
                    return None
            else:
                state.skip_score_plugins.add(scorer.name)
        return state

    def rankings(self, state: CycleState) -> list[Ranking]:
        """Return the local Score plugins that take part, in order."""
        return [
            Ranking(p.name, weight, type(p).normalize is not ScorePlugin.normalize, p.reads_pods)
            for p, weight in self._scorers
            if p.name not in state.skip_score_plugins
        ]

    def in_order(self, scores: list[PluginScores]) -> list[PluginScores]:
        """Return scores in the order of the plugins."""
        return sorted(scores, key=lambda of_one: self._score_order[of_one[0]])

    def judge(self, state: CycleState) -> Judge:
        """Return what judges single nodes for the pods of the class that ``state`` is of."""
        filters = [p for p in self._filters if p.name not in state.skip_filter_plugins]
        return Judge(filters, self._taking_part(state))

    def guarded(self, function: Callable[[*Ts], R], *args: *Ts) -> R | None:
        """Call a function that calls plugins; None if one of them raises, so that the ordinary way must report it."""
        try:
            return self._calls.guard.call("", FILTER, function, *args)
        except PluginFault:
            return None

    def normalize(
        self, name: str, state: CycleState, pod: Pod, nodes: NodesView, scores: ScoreColumn
    ) -> IntColumn | None:
        """Return one plugin's normalized scores of the feasible ``nodes``; None if it fails or leaves 0..100."""
        plugin = next(p for p, _ in self._scorers if p.name == name)
        try:
            raw: IntColumn = scores.astype(np.int64, copy=False)
            answer = self._calls.guard.call(name, NORMALIZE, plugin.normalize, state, pod, nodes, raw)
        except PluginFault:
            return None
        normalized = as_int_column(answer, len(nodes))
        return normalized if normalized is not None and are_in_range(normalized) else None

    def _taking_part(self, state: CycleState) -> list[ScorePlugin]:
        return [p for p, _ in self._scorers if p.name not in state.skip_score_plugins]


class Judge:
    """Judges nodes for the pods of one class, by the plugins' per-node forms or, if they are many, by columns.

    Plugins that read the pods on a node (*moving* ones) are told apart from those that do not (*standing* ones), which
    have nothing new to say as long as the node object is the same. A plugin that raises is the caller's to guard.
    """

    __slots__ = ("_filters", "_moving", "_moving_scores", "_scorers", "_scores", "_standing")

    def __init__(self, filters: Sequence[FilterPlugin], scorers: Sequence[ScorePlugin]) -> None:
        self._filters, self._scorers = filters, scorers
        self._standing = [p.filter for p in filters if not p.reads_pods]
        self._moving = [p.filter for p in filters if p.reads_pods]
        self._scores = [(i, p.score) for i, p in enumerate(scorers)]
        self._moving_scores = [(i, p.score) for i, p in enumerate(scorers) if p.reads_pods]

    def stands(self, state: CycleState, pod: Pod, node: NodeView) -> bool | None:
        """Say whether the standing filters let the pod on the node; None if one cannot judge it."""
        return _passes(self._standing, state, pod, node)

    def moves(self, state: CycleState, pod: Pod, node: NodeView) -> bool | None:
        """Say whether the moving filters let the pod on the node; None if one cannot judge it."""
        return _passes(self._moving, state, pod, node)

    def scores(self, state: CycleState, pod: Pod, node: NodeView, *, moving_only: bool) -> list[tuple[int, int]]:
        """Return the place among the rankings and the raw score of all scorers, or of the moving ones."""
        return [(i, score(state, pod, node)) for i, score in (self._moving_scores if moving_only else self._scores)]

    def verdicts(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[BoolColumn, BoolColumn] | None:
        """Return ``stands`` and ``moves`` of all nodes of a view; None if any node cannot be judged."""
        stands, moves = np.ones(len(nodes), np.bool_), np.ones(len(nodes), np.bool_)
        for plugin in self._filters:
            verdicts = plugin.filter_all(state, pod, nodes)
            if verdicts.errors is not None and verdicts.errors.any():
                return None
            column = moves if plugin.reads_pods else stands
            column &= verdicts.ok
        return stands, moves

    def raw_scores(self, state: CycleState, pod: Pod, nodes: NodesView) -> list[IntColumn]:
        """Return each scorer's raw scores of all nodes of a view."""
        return [np.array(p.score_all(state, pod, nodes), np.int64) for p in self._scorers]


def _passes(
    filters: Sequence[Callable[[CycleState, Pod, NodeView], Status | None]], state: CycleState, pod: Pod, node: NodeView
) -> bool | None:
    for judge in filters:
        status = judge(state, pod, node)
        if status is not None and status.code is not Code.SUCCESS:
            return False if status.is_rejected else None
    return True


def _goes_on(name: str, status: Status | None, skipped: set[str]) -> bool:
    """Say whether the attempt goes on after a plugin's status, and note whether the plugin Skips."""
    if status is not None and status.code is Code.SKIP:
        skipped.add(name)
        return True
    return status is None
