"""Coupled plugins: those whose say about a node depends on more than the node and the pod's signature.

Spread and affinity look at whole domains. For pods of a class, whose other plugins' answers are kept, they alone are
asked in every attempt: PreFilter, all nodes at once, PreScore, and the scores of the nodes that are feasible. Whatever
is out of the ordinary (a rejection, an error, an answer that makes no sense) is left to the ordinary way, which reports
it; asking twice does no harm. A plugin that raises is the caller's to guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api import (
    BoolColumn,
    Code,
    CycleState,
    FilterPlugin,
    NodesView,
    Plugin,
    Pod,
    PreFilterPlugin,
    PreScorePlugin,
    ScoreColumn,
    ScorePlugin,
    Status,
)
from scheduler.framework.columns import are_in_range, are_verdicts, as_int_column, as_score_column

__all__ = ["Coupled", "Filtered", "Weighted", "is_local"]


class Filtered(NamedTuple):
    """What the Filter plugins that do not Skip say; None: they let the pod on every node."""

    ok: BoolColumn | None


class Weighted(NamedTuple):
    """The normalized scores of one plugin."""

    name: str
    weight: int
    scores: ScoreColumn


class Coupled:
    """The coupled plugins for the pods of one class.

    Attributes:
        names: of all of them.
    """

    __slots__ = ("_filters", "_must_skip", "_pre_filter", "_pre_score", "_scorers", "names")

    def __init__(
        self,
        pre_filter: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        pre_score: Sequence[PreScorePlugin],
        scorers: Sequence[tuple[ScorePlugin, int]],
        must_skip: frozenset[str],
    ) -> None:
        """Make it.

        Args:
            pre_filter: in their order, as the others.
            filters: those without a PreFilter are always asked.
            pre_score: PreScore plugins.
            scorers: with their weights; those without a PreScore are always asked.
            must_skip: names of plugins that are local for other pods, or must be asked node by node.
        """
        self._pre_filter = tuple(pre_filter)
        self._filters = tuple(filters)
        self._pre_score = tuple(pre_score)
        self._scorers = tuple(_Scorer.of(plugin, weight) for plugin, weight in scorers)
        self._must_skip = must_skip
        self.names = frozenset(plugin.name for plugin in (*pre_filter, *pre_score))

    def have_skipped(self, state: CycleState) -> bool:
        """Say whether those that must Skip have done so in the attempt that ``state`` is of."""
        return all(p.name in state.skip_filter_plugins for p in self._pre_filter if p.name in self._must_skip) and all(
            p.name in state.skip_score_plugins for p in self._pre_score if p.name in self._must_skip
        )

    def filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> Filtered | None:
        """Run PreFilter and Filter over all nodes; None: it is a case for the ordinary way."""
        skipped = state.skip_filter_plugins = state.skip_filter_plugins - self.names
        for plugin in self._pre_filter:
            answer: Any = plugin.pre_filter(state, pod, nodes)
            if not isinstance(answer, tuple) or len(answer) != 2:
                return None
            if _is_skip(answer[1]):
                skipped.add(plugin.name)
            elif answer != (None, None) or plugin.name in self._must_skip:
                return None
        ok: BoolColumn | None = None
        for filter_ in self._filters:
            if filter_.name in skipped:
                continue
            verdicts: Any = filter_.filter_all(state, pod, nodes)
            if not are_verdicts(verdicts, len(nodes)) or verdicts.errors is not None:
                return None
            ok = verdicts.ok if ok is None else ok & verdicts.ok
        return Filtered(ok)

    def score(
        self, state: CycleState, pod: Pod, feasible: NodesView, nodes: NodesView, rows: NDArray[np.intp]
    ) -> list[Weighted] | None:
        """Run PreScore and Score over the feasible nodes; None: it is a case for the ordinary way.

        Args:
            state: of the attempt.
            pod: the pod.
            feasible: the feasible nodes.
            nodes: all nodes.
            rows: which of them are feasible.
        """
        skipped = state.skip_score_plugins = state.skip_score_plugins - self.names
        for plugin in self._pre_score:
            status: Any = plugin.pre_score(state, pod, feasible)
            if _is_skip(status):
                skipped.add(plugin.name)
            elif status is not None or plugin.name in self._must_skip:
                return None
        # Few nodes are out of the running: to score them, too, costs less than to gather the others' columns.
        are_most = len(rows) < len(nodes) < 2 * len(rows)
        scored: list[Weighted] = []
        for scorer in self._scorers:
            if scorer.plugin.name in skipped:
                continue
            if are_most and scorer.is_of_node:
                all_scores = as_score_column(scorer.plugin.score_all(state, pod, nodes), len(nodes))
                scores = None if all_scores is None else all_scores[rows]
            else:
                scores = as_score_column(scorer.plugin.score_all(state, pod, feasible), len(feasible))
            if scores is not None and scorer.normalizes:
                raw = scores.astype(np.int64, copy=False)
                scores = as_int_column(scorer.plugin.normalize(state, pod, feasible, raw), len(feasible))
            if scores is None or not are_in_range(scores):
                return None
            scored.append(Weighted(scorer.plugin.name, scorer.weight, scores))
        return scored


class _Scorer(NamedTuple):
    """A Score plugin.

    Attributes:
        weight: of its scores.
        normalizes: whether it brings its scores to 0..100 itself.
        is_of_node: whether a node's score depends on no other node; so it is with a plugin that gives signatures.
    """

    plugin: ScorePlugin
    weight: int
    normalizes: bool
    is_of_node: bool

    @classmethod
    def of(cls, plugin: ScorePlugin, weight: int) -> _Scorer:
        return cls(plugin, weight, type(plugin).normalize is not ScorePlugin.normalize, is_local(plugin))


def is_local(plugin: Plugin) -> bool:
    """Say whether the plugin gives a signature."""
    return type(plugin).node_signature is not Plugin.node_signature


def _is_skip(status: Status | None) -> bool:
    return isinstance(status, Status) and status.code is Code.SKIP
