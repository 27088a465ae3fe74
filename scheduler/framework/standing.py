"""Standing answers: what plugins that read node objects alone say of all nodes, kept while pods come and go.

Taints, labels, cordons, names and images change rarely, pods all the time. So plugins with ``reads_pods = False`` are
asked about all nodes once for each *standing key* (their signatures of the pod) and their answers are handed out until
a node object changes; then the changed nodes are asked about anew, one by one, and only if an answer is another one is
everything asked again (a kubelet's heartbeat changes no answer). Pods that differ in their sizes share a key.

The extension points go on as always, in the order of the plugins, and take a kept answer where there is one; so
verdicts, reasons, scores and counted evaluations are those of asking.

Design: docs/design/0012-kept-between-decisions.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

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
    Verdicts,
)
from scheduler.framework.calls import Calls
from scheduler.framework.columns import add_weighted, are_in_range, are_verdicts, as_int_column, narrowed, totals_type
from scheduler.framework.coupled import Coupled
from scheduler.framework.guard import PluginFault
from scheduler.framework.points import FILTER

__all__ = ["Answers", "KeptScores", "KeptVerdicts", "StandIn", "StandingPoint", "is_standing"]

_POINT = "NodeSignature"


class KeptVerdicts:
    """One Filter plugin's verdicts.

    Attributes:
        verdicts: as the plugin gave them; None if no node fails, which takes no room then.
    """

    __slots__ = ("verdicts",)

    def __init__(self, verdicts: Verdicts) -> None:
        self.verdicts = None if verdicts.ok.all() else verdicts

    def passes(self, row: int) -> bool:
        """Say whether a node passed."""
        return self.verdicts is None or bool(self.verdicts.ok.item(row))


class KeptScores:
    """One Score plugin's scores.

    Attributes:
        raw: as the plugin gave them.
        normalized: what they become if all nodes are feasible; in 0..100.
    """

    __slots__ = ("normalized", "raw")

    def __init__(self, raw: ScoreColumn, normalized: ScoreColumn) -> None:
        """Keep them in the narrowest form: there may be as many as standing keys, with one row a node each."""
        self.normalized = narrowed(normalized)
        self.raw = self.normalized if raw is normalized else narrowed(raw)


class StandIn(NamedTuple):
    """What the PreFilter of a covered plugin would do.

    Attributes:
        goes_on: it does not Skip.
        written: what it wrote, if anything.
    """

    goes_on: bool
    written: CycleState | None


class _Prepared:
    """What PreFilter and PreScore left behind; see ``Answers``."""

    __slots__ = ("scores", "state", "written")

    def __init__(self) -> None:
        self.state = CycleState()
        self.written: dict[str, CycleState] = {}
        self.scores = CycleState()


class Answers:
    """What the standing plugins say to the pods of one standing key.

    Attributes:
        nodes: the snapshot that the rows are of.
        covered: the plugins that need not be asked, by name.
        state: all that their PreFilter and PreScore wrote, and whether they Skip.
        prepared_scores: what their PreScore wrote.
        verdicts: of the covered Filter plugins that do not Skip.
        scores: of the covered Score plugins that do not Skip.
        weighted: sum of the covered scores if all nodes are feasible.
        coupled: the plugins that are not covered; None if they must be asked one by one.
    """

    __slots__ = (
        "_filters",
        "_scorers",
        "coupled",
        "covered",
        "nodes",
        "prepared_scores",
        "scores",
        "state",
        "verdicts",
        "weighted",
    )

    def __init__(  # noqa: PLR0917  what one asking brought
        self,
        nodes: NodesView,
        covered: frozenset[str],
        prepared: _Prepared,
        verdicts: Mapping[FilterPlugin, Verdicts],
        scores: Mapping[ScorePlugin, KeptScores],
        weighted: ScoreColumn,
        coupled: Coupled | None,
    ) -> None:
        self.nodes = nodes
        self.state = prepared.state
        skipped = prepared.state.skip_filter_plugins
        self.covered = {name: StandIn(name not in skipped, prepared.written.get(name)) for name in covered}
        self.prepared_scores = prepared.scores
        kept_verdicts = {plugin: KeptVerdicts(given) for plugin, given in verdicts.items()}
        self._filters = list(kept_verdicts.items())
        self._scorers = [(plugin, kept.raw) for plugin, kept in scores.items()]
        self.verdicts = {plugin.name: kept for plugin, kept in kept_verdicts.items()}
        self.scores = {plugin.name: kept for plugin, kept in scores.items()}
        self.weighted = weighted
        self.coupled = coupled

    @property
    def fits(self) -> BoolColumn:
        """Return which rows no covered Filter plugin rules out."""
        fits = np.ones(len(self.nodes), np.bool_)
        for kept in self.verdicts.values():
            if kept.verdicts is not None:
                fits &= kept.verdicts.ok
        return fits

    def hold_for(self, pod: Pod, rows: Sequence[int], infos: Sequence[NodeView]) -> bool:
        """Say whether nothing has to be asked anew after the node objects of these rows were replaced.

        A node that fails, or failed, may do so for another reason, so it has to be asked about.
        """
        for row in rows:
            node = infos[row]
            for plugin, kept in self._filters:
                if not kept.passes(row) or plugin.filter(self.state, pod, node) is not None:
                    return False
            for scorer, raw in self._scorers:
                if scorer.score(self.state, pod, node) != raw.item(row):
                    return False
        return True


class StandingPoint:
    """The plugins of one profile that can give standing answers."""

    __slots__ = ("_calls", "_filters", "_plugins", "_pre_filter", "_pre_score", "_scorers", "_totals_type", "_weights")

    def __init__(  # noqa: PLR0917  the points in their order
        self,
        pre_filter: Sequence[PreFilterPlugin],
        filter_: Sequence[FilterPlugin],
        pre_score: Sequence[PreScorePlugin],
        score: Sequence[ScorePlugin],
        weights: Mapping[str, int] | None,
        calls: Calls,
    ) -> None:
        everybody: list[Plugin] = [*pre_filter, *filter_, *pre_score, *score]
        self._plugins = [p for p in dict.fromkeys(everybody) if is_standing(p)]
        self._pre_filter, self._filters = tuple(pre_filter), tuple(filter_)
        self._pre_score, self._scorers = tuple(pre_score), tuple(score)
        self._weights = {p: (weights or {}).get(p.name) or 1 for p in score}
        self._totals_type = totals_type(self._weights.values())
        self._calls = calls

    def key(self, pod: Pod) -> tuple[Hashable | None, ...] | None:
        """Return the plugins' signatures, None for each that gives none; None if one of them raises."""
        try:
            return self._calls.guard.call("", _POINT, self._key, pod)
        except PluginFault:
            return None  # counted and logged by the guard

    def _key(self, pod: Pod) -> tuple[Hashable | None, ...]:
        return tuple([plugin.node_signature(pod) for plugin in self._plugins])

    def ask(self, key: Sequence[Hashable | None], pod: Pod, nodes: NodesView) -> Answers | None:
        """Ask the plugins about all nodes; None if one fails, rejects the pod or narrows the nodes in PreFilter."""
        covered = {plugin for plugin, signature in zip(self._plugins, key, strict=True) if signature is not None}
        try:
            return self._calls.guard.call("", FILTER, self._ask, covered, pod, nodes)
        except PluginFault:
            return None  # the ordinary way meets the same fault and reports it

    def holds(self, answers: Answers, pod: Pod, rows: Sequence[int], infos: Sequence[NodeView]) -> bool:
        """Say what ``Answers.hold_for`` says; False if a plugin raises."""
        try:
            return self._calls.guard.call("", FILTER, answers.hold_for, pod, rows, infos)
        except PluginFault:
            return False

    def _ask(self, covered: set[Plugin], pod: Pod, nodes: NodesView) -> Answers | None:
        prepared = self._prepare(covered, pod, nodes)
        if prepared is None:
            return None
        state = prepared.state
        verdicts: dict[FilterPlugin, Verdicts] = {}
        for plugin in self._filters:
            if plugin not in covered or plugin.name in state.skip_filter_plugins:
                continue
            answer: object = plugin.filter_all(state, pod, nodes)
            if not are_verdicts(answer, len(nodes)) or answer.errors is not None:
                return None
            verdicts[plugin] = answer
        scores: dict[ScorePlugin, KeptScores] = {}
        for scorer in self._scorers:
            if scorer not in covered or scorer.name in state.skip_score_plugins:
                continue
            kept = _scores_of(scorer, state, pod, nodes)
            if kept is None:
                return None
            scores[scorer] = kept
        weighted = np.zeros(len(nodes), self._totals_type)
        for scorer, kept in scores.items():
            add_weighted(weighted, kept.normalized, self._weights[scorer])
        names = frozenset(p.name for p in covered)
        return Answers(nodes, names, prepared, verdicts, scores, weighted, self._coupled(covered))

    def _coupled(self, covered: set[Plugin]) -> Coupled | None:
        filters = [p for p in self._filters if p not in covered]
        scorers = [(p, self._weights[p]) for p in self._scorers if p not in covered]
        rest: list[Plugin] = [*self._pre_filter, *self._filters, *self._pre_score, *self._scorers]
        if any(self._calls.guard.watches(p.name) for p in rest if p not in covered):
            return None
        if any(type(p).filter_all is FilterPlugin.filter_all for p in filters):
            return None
        if any(type(p).score_all is ScorePlugin.score_all for p, _ in scorers):
            return None
        return Coupled(
            [p for p in self._pre_filter if p not in covered],
            filters,
            [p for p in self._pre_score if p not in covered],
            scorers,
            frozenset(p.name for p in self._plugins if p not in covered),
        )

    def _prepare(self, covered: set[Plugin], pod: Pod, nodes: NodesView) -> _Prepared | None:
        """Run PreFilter and PreScore; None unless every plugin goes on or Skips."""
        made = _Prepared()
        for plugin in self._pre_filter:
            if plugin in covered:
                own = CycleState()
                answer: object = plugin.pre_filter(own, pod, nodes)
                if not isinstance(answer, tuple) or len(answer) != 2 or answer[0] is not None:
                    return None
                if not _goes_on(answer[1], plugin.name, made.state.skip_filter_plugins):
                    return None
                if not own.is_empty:
                    made.written[plugin.name] = own
                    made.state.take(own)
        for scorer in self._pre_score:
            if scorer in covered:
                status = scorer.pre_score(made.scores, pod, nodes)
                if not _goes_on(status, scorer.name, made.state.skip_score_plugins):
                    return None
        made.state.take(made.scores)
        return made


def is_standing(plugin: Plugin) -> bool:
    """Say whether the plugin's answers can be kept for the pods to which it gives a signature."""
    return not plugin.reads_pods and type(plugin).node_signature is not Plugin.node_signature


def _goes_on(status: object, name: str, skipped: set[str]) -> bool:
    if status is None:
        return True
    if isinstance(status, Status) and status.code is Code.SKIP:
        skipped.add(name)
        return True
    return False


def _scores_of(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: NodesView) -> KeptScores | None:
    raw = as_int_column(plugin.score_all(state, pod, nodes), len(nodes))
    if raw is None:
        return None
    normalized: IntColumn | None = raw
    if type(plugin).normalize is not ScorePlugin.normalize:
        # A copy goes out, because a plugin may normalize in place.
        normalized = as_int_column(plugin.normalize(state, pod, nodes, raw.copy()), len(nodes))
    return KeptScores(raw, normalized) if normalized is not None and are_in_range(normalized) else None
