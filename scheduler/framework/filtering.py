"""Filter: which nodes can run the pod, for all nodes at once and for a single one.

All nodes: every plugin is asked for a boolean column; the columns are and-ed. Who owns a failing row (the first
plugin that says no, as upstream's per-node loop has it) and why is worked out only on request, see ``FilterOutcome``.
A plugin with the per-node form alone is asked only about the rows that are still in the running.

Single node: nominated pods, preemption's dry runs. Source: ``RunFilterPlugins`` and
``RunFilterPluginsWithNominatedPods``; design: docs/design/0001-two-plugin-forms.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, CycleState, FilterPlugin, NodesView, NodeView, Pod, Spare, Status, Verdicts
from scheduler.framework.calls import Calls, failed
from scheduler.framework.columns import are_verdicts
from scheduler.framework.guard import PluginFault, code_name
from scheduler.framework.nominations import Nominations, editable_copy, yielding_to
from scheduler.framework.points import FILTER
from scheduler.framework.prefilter import PreFilterPoint
from scheduler.framework.standing import Answers, KeptVerdicts, is_standing

__all__ = ["FilterOutcome", "FilterPoint"]

_WORDING = 'running "%s" filter plugin'


class _Entry(NamedTuple):
    plugin: FilterPlugin
    name: str
    is_whole_cluster: bool
    evaluated: Callable[[int], None]


_NOTHING: Mapping[str, KeptVerdicts] = {}

# A plugin, its verdicts, and the rows it was asked about (None: all).
_Verdict = tuple[str, Verdicts, NDArray[np.intp] | None]


class FilterOutcome:
    """Which rows of a view passed, and on request why the others did not.

    Attributes:
        ok: one row a node of the view.
    """

    __slots__ = ("_calls", "_overrides", "_verdicts", "ok")

    def __init__(self, calls: Calls, ok: BoolColumn, verdicts: list[_Verdict], overrides: dict[int, Status]) -> None:
        self._calls = calls
        self._verdicts = verdicts
        self._overrides = overrides
        self.ok = ok

    def explain(self, visited: BoolColumn | None) -> list[tuple[Status, NDArray[np.intp]]] | Status:
        """Return the rejections as groups of rows with one status, plugin named; or an Error.

        Args:
            visited: rows that count; others are treated as never looked at. None: all.
        """
        try:
            return self._explain(visited)
        except PluginFault as fault:
            return fault.status(_WORDING)

    def _explain(self, visited: BoolColumn | None) -> list[tuple[Status, NDArray[np.intp]]] | Status:
        wanted = ~self.ok if visited is None else visited & ~self.ok
        groups: list[tuple[Status, NDArray[np.intp]]] = []
        for row, status in self._overrides.items():
            if wanted[row]:
                wanted[row] = False
                groups.append((status, np.array([row], np.intp)))
        for plugin, verdicts, rows in self._verdicts:
            no = ~verdicts.ok
            mine = np.flatnonzero(no & (wanted if rows is None else wanted[rows]))
            if len(mine):
                wanted[mine if rows is None else rows[mine]] = False
                answer = self._explain_plugin(plugin, verdicts, mine)
                if isinstance(answer, Status):
                    return answer
                groups += answer if rows is None else [(status, rows[some]) for status, some in answer]
        return groups

    def _explain_plugin(
        self, plugin: str, verdicts: Verdicts, rows: NDArray[np.intp]
    ) -> list[tuple[Status, NDArray[np.intp]]] | Status:
        guard = self._calls.guard
        answer = guard.call(
            plugin, FILTER, lambda: [(s, np.asarray(r, np.intp).ravel()) for s, r in verdicts.explain(rows)]
        )
        explained = np.concatenate([some for _, some in answer]) if answer else rows[:0]
        if not np.array_equal(np.sort(explained), rows):
            raise guard.bad_answer(plugin, FILTER, answer, "each failing row exactly once")
        groups = []
        for raw, some in answer:
            status = guard.status(plugin, FILTER, raw)
            if status is None:
                raise guard.bad_answer(plugin, FILTER, raw, "a rejection of the failing rows")
            if not status.is_rejected:
                return failed(_WORDING % plugin, plugin, status)
            groups.append((status.by(plugin), some))
        return groups


class FilterPoint:
    """The Filter plugins of one profile, in order.

    Attributes:
        plugins: the plugins.
        is_whole_cluster: whether every plugin has a whole-cluster form of its own.
    """

    __slots__ = ("_calls", "_entries", "_nominations", "_pre_filter", "is_whole_cluster", "plugins")

    def __init__(
        self, plugins: Sequence[FilterPlugin], calls: Calls, pre_filter: PreFilterPoint, nominations: Nominations
    ) -> None:
        self.plugins = tuple(plugins)
        self._calls = calls
        self._pre_filter = pre_filter
        self._nominations = nominations
        counter = calls.metrics.evaluation_counter
        self._entries = [
            _Entry(p, p.name, type(p).filter_all is not FilterPlugin.filter_all, counter(p.name, FILTER, calls.profile))
            for p in plugins
        ]
        self.is_whole_cluster = all(entry.is_whole_cluster for entry in self._entries)

    def set_nominations(self, nominations: Nominations) -> None:
        """Read nominations from here from now on."""
        self._nominations = nominations

    def run_all(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> FilterOutcome | Status:
        """Filter all rows of ``nodes``; returns an Error if any plugin fails on any row.

        ``answers`` spare calls if they are about these very ``nodes``.

        The duration of the extension point is observed by the caller, once for an attempt (parity).
        """
        try:
            return self._run_all(state, pod, nodes, answers)
        except PluginFault as fault:
            return fault.status(_WORDING)

    def _run_all(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None
    ) -> FilterOutcome | Status:
        size = num_ok = len(nodes)
        ok = _all_pass(size)
        verdicts: list[_Verdict] = []
        skipped = state.skip_filter_plugins
        known = answers.verdicts if answers is not None and answers.nodes is nodes else _NOTHING
        for entry in self._entries:
            if entry.name in skipped:
                continue
            if not num_ok:
                break
            entry.evaluated(num_ok)
            kept = known.get(entry.name)
            if kept is not None:
                if kept.verdicts is not None:
                    verdicts.append((entry.name, kept.verdicts, None))
                    ok = ok & kept.verdicts.ok
                    num_ok = int(np.count_nonzero(ok))
                continue
            verdict = self._ask(entry, state, pod, nodes, ok)
            if isinstance(verdict, Status):
                return verdict
            if entry.name in skipped and not entry.is_whole_cluster:  # given up half-way by its shield
                continue
            verdicts.append(verdict)
            ok = _and(ok, verdict)
            num_ok = int(np.count_nonzero(ok))
        if not self._nominations.nominated_nodes:
            return FilterOutcome(self._calls, ok, verdicts, {})
        ok = ok.copy()
        overrides = self._with_nominated(state, pod, nodes, ok)
        return overrides if isinstance(overrides, Status) else FilterOutcome(self._calls, ok, verdicts, overrides)

    def _ask(self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView, ok: BoolColumn) -> _Verdict | Status:
        """Ask a plugin about all rows or, if it works node by node, about those that are still ``ok``."""
        if entry.is_whole_cluster:
            answer = self._ask_all(entry, state, pod, nodes, len(ok))
            if answer.errors is not None and (failing := np.flatnonzero(answer.errors & ok)).size:
                return self._failure(entry.name, answer, failing)
            return entry.name, answer, None
        rows = np.flatnonzero(ok)
        each = self._ask_each(entry, state, pod, nodes, rows)
        return each if isinstance(each, Status) else (entry.name, each, rows)

    def _ask_all(self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView, size: int) -> Verdicts:
        guard = self._calls.guard
        answer: object = guard.call(entry.name, FILTER, entry.plugin.filter_all, state, pod, nodes)
        if not are_verdicts(answer, size):
            raise guard.bad_answer(entry.name, FILTER, answer, f"Verdicts with one bool for each of {size} nodes")
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(FILTER, entry.name, "Success", guard.last_s)
        return answer

    def _failure(self, name: str, answer: Verdicts, rows: NDArray[np.intp]) -> Status:
        """Return the Error of the first of these rows, which the plugin could not judge."""
        for raw, _ in self._calls.guard.call(name, FILTER, answer.explain, rows[:1]):
            status = self._calls.guard.status(name, FILTER, raw)
            if status is not None and not status.is_rejected:
                return failed(_WORDING % name, name, status)
        raise self._calls.guard.bad_answer(name, FILTER, None, "an Error for a row that could not be judged")

    def _ask_each(
        self, entry: _Entry, state: CycleState, pod: Pod, nodes: NodesView, rows: NDArray[np.intp]
    ) -> Verdicts | Status:
        guard, name, function = self._calls.guard, entry.name, entry.plugin.filter
        infos = nodes.infos

        def ask() -> list[object]:
            return [function(state, pod, infos[row]) for row in rows.tolist()]

        answers = guard.call(name, FILTER, ask)
        statuses = [None if answer is None else guard.status(name, FILTER, answer) for answer in answers]
        for status in statuses:
            if status is not None and not status.is_rejected:
                return failed(_WORDING % name, name, status)
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(FILTER, name, "Success", guard.last_s)
        ok = np.fromiter((status is None for status in statuses), np.bool_, len(statuses))
        return Verdicts(ok, lambda failing: _group(statuses, failing))

    def _with_nominated(
        self, state: CycleState, pod: Pod, nodes: NodesView, ok: BoolColumn
    ) -> dict[int, Status] | Status:
        """Judge rows with nominated pods once more with those pods; clears ``ok`` where that fails.

        The verdict with the nominated pods comes first upstream, so where both fail, it is the one that is reported.
        """
        overrides: dict[int, Status] = {}
        for name in self._nominations.nominated_nodes:
            row = nodes.row(name)
            if row is None:
                continue
            added, status = self._filter_with_added(state, pod, nodes.infos[row])
            if added and status is not None:
                if not status.is_rejected:
                    return status
                ok[row] = False
                overrides[row] = status
        return overrides

    def run_node(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Say whether the pod can run on this one node as it is (``RunFilterPlugins``)."""
        guard = self._calls.guard
        skipped = state.skip_filter_plugins
        for plugin, name, _, evaluated in self._entries:
            if name in skipped:
                continue
            evaluated(1)
            try:
                answer: object = guard.call(name, FILTER, plugin.filter, state, pod, node)
                status = None if answer is None else guard.status(name, FILTER, answer)
            except PluginFault as fault:
                return fault.status(_WORDING)
            if state.record_plugin_metrics:
                self._calls.metrics.plugin_duration(FILTER, name, code_name(status), guard.last_s)
            if status is not None:
                return status.by(name) if status.is_rejected else failed(_WORDING % name, name, status)
        return None

    def run_node_with_nominated(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Say whether the pod can run on this node both with and without the pods nominated to it."""
        if node.name in self._nominations.nominated_nodes:
            _, status = self._filter_with_added(state, pod, node)
            if status is not None:
                return status
        return self.run_node(state, pod, node)

    def sparing(self, state: CycleState, pod: Pod) -> Spare | None:
        """Return what says at once who may stay on a node on which room is to be made for the pod.

        There is such a short cut if one plugin alone looks at the pods on a node, all others have nothing new to say
        when pods come and go, and no PreFilter plugin has to be told of them.
        """
        if self._pre_filter.follows_pods(state):
            return None
        asked = [entry for entry in self._entries if entry.name not in state.skip_filter_plugins]
        moving = [e for e in asked if not (is_standing(e.plugin) and e.plugin.node_signature(pod) is not None)]
        if len(moving) != 1:
            return None
        sole = asked.index(moving[0])
        return lambda node, others: self._spare(asked, sole, state, pod, node, others)

    def _spare(  # noqa: PLR0917  two of them bound beforehand
        self, asked: Sequence[_Entry], sole: int, state: CycleState, pod: Pod, node: NodeView, others: Sequence[Pod]
    ) -> list[bool] | Status | None:
        if yielding_to(pod, self._nominations.nominated_pods_for_node(node.name)):
            return None
        try:
            answer = self._calls.guard.call(asked[sole].name, FILTER, _spare, asked, sole, state, pod, node, others)
        except PluginFault:
            return None  # the steps meet the same fault and report it
        if answer is None:
            return None
        if isinstance(answer, Status):
            self._count_trials(asked, sole, 1, 0)
            return answer.by(asked[sole].name) if answer.is_rejected else None
        self._count_trials(asked, sole, 1 + len(answer), 1 + sum(answer))
        return answer

    @staticmethod
    def _count_trials(asked: Sequence[_Entry], sole: int, tried: int, passed: int) -> None:
        """Count the evaluations that the steps would have taken: plugins behind ``sole`` see only what it lets pass."""
        for i, entry in enumerate(asked):
            entry.evaluated(tried if i <= sole else passed)

    def _filter_with_added(self, state: CycleState, pod: Pod, node: NodeView) -> tuple[bool, Status | None]:
        """Return whether there was any pod to add, and the verdict with those pods on the node."""
        others = yielding_to(pod, self._nominations.nominated_pods_for_node(node.name))
        if not others:
            return False, None
        trial_state, trial_node = state.clone(), editable_copy(node)
        for other in others:
            trial_node.add_pod(other)
            status = self._pre_filter.add_pod(trial_state, pod, other, trial_node)
            if status is not None:
                return True, status
        return True, self.run_node(trial_state, pod, trial_node)


def _and(ok: BoolColumn, verdict: _Verdict) -> BoolColumn:
    _, verdicts, rows = verdict
    if rows is None:
        return ok & verdicts.ok
    both = ok.copy()
    both[rows] = verdicts.ok
    return both


def _spare(  # noqa: PLR0917  see ``FilterPoint._spare``
    asked: Sequence[_Entry], sole: int, state: CycleState, pod: Pod, node: NodeView, others: Sequence[Pod]
) -> list[bool] | Status | None:
    for i, entry in enumerate(asked):
        if i != sole and entry.plugin.filter(state, pod, node) is not None:
            return None
    return asked[sole].plugin.spare(state, pod, node, others)


@lru_cache(maxsize=4)
def _all_pass(size: int) -> BoolColumn:
    ok = np.ones(size, np.bool_)
    ok.flags.writeable = False
    return ok


def _group(statuses: Sequence[Status | None], rows: NDArray[np.intp]) -> list[tuple[Status, NDArray[np.intp]]]:
    groups: dict[Status, list[int]] = {}
    for row in rows.tolist():
        status = statuses[row]
        if status is not None:
            groups.setdefault(status, []).append(row)
    return [(status, np.array(members, np.intp)) for status, members in groups.items()]
