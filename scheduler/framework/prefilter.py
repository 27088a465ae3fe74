"""PreFilter: run once an attempt, over all nodes; may narrow the search, step aside (Skip) or reject the pod at once.

Also the PreFilter extensions (``add_pod``, ``remove_pod``) that "what if" evaluations use to keep the state in step.
Source: ``RunPreFilterPlugins``, ``RunPreFilterExtensionAddPod`` in ``framework/runtime/framework.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.api import Code, CycleState, NodesView, NodeView, Pod, PreFilterPlugin, PreFilterResult, Status
from scheduler.framework.calls import Calls, failed
from scheduler.framework.guard import PluginFault, code_name
from scheduler.framework.points import ADD_POD, PRE_FILTER, REMOVE_POD
from scheduler.framework.standing import Answers, StandIn

__all__ = ["PreFilterOutcome", "PreFilterPoint", "is_narrowing"]

_WORDING = 'running PreFilter plugin "%s"'
_EXTENSION_WORDINGS = {
    ADD_POD: 'running AddPod on PreFilter plugin "%s"',
    REMOVE_POD: 'running RemovePod on PreFilter plugin "%s"',
}


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What all PreFilter plugins said together.

    Attributes:
        status: None if the search goes on; a rejection of the whole cluster; or an Error.
        node_names: the only nodes to look at, or None for all. They need not exist.
        narrowed_by: plugins that named nodes, sorted.
    """

    status: Status | None = None
    node_names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()


_GO_ON = PreFilterOutcome()
_NOBODY: Mapping[str, StandIn] = {}


class PreFilterPoint:
    """The PreFilter plugins of one profile, in order."""

    __slots__ = ("_adders", "_calls", "_plugins", "_removers", "plugins")

    def __init__(self, plugins: Sequence[PreFilterPlugin], calls: Calls) -> None:
        self.plugins = tuple(plugins)
        self._calls = calls
        self._plugins = [
            (p, p.name, calls.metrics.evaluation_counter(p.name, PRE_FILTER, calls.profile)) for p in plugins
        ]
        self._adders = [p for p in plugins if type(p).add_pod is not PreFilterPlugin.add_pod]
        self._removers = [p for p in plugins if type(p).remove_pod is not PreFilterPlugin.remove_pod]

    def run(self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None) -> PreFilterOutcome:
        """Run all plugins that ``answers`` do not cover; fills ``state.skip_filter_plugins``."""
        started_s = self._calls.perf_counter()
        try:
            outcome = self._run(state, pod, nodes, answers)
        except PluginFault as fault:
            outcome = PreFilterOutcome(fault.status(_WORDING))
        self._calls.observe(PRE_FILTER, outcome.status, started_s)
        return outcome

    def _run(self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None) -> PreFilterOutcome:
        skipped: set[str] = answers.state.skip_filter_plugins.copy() if answers is not None else set()
        state.skip_filter_plugins = skipped
        outcome, rejection = _GO_ON, None
        covered = answers.covered if answers is not None else _NOBODY
        for plugin, name, evaluated in self._plugins:
            stand_in = covered.get(name)
            if stand_in is not None:
                # Only when its turn comes: if a plugin before ends the point, this one would not be asked.
                if stand_in.written is not None:
                    state.take(stand_in.written)
                if stand_in.goes_on:
                    evaluated(1)
                continue
            result, status = self._ask(plugin, name, state, pod, nodes)
            if status is not None and status.code is Code.SKIP:
                skipped.add(name)
                continue
            evaluated(1)
            if status is not None:
                # parity: the others still run, because preemption may follow and needs their state (k/k#119770).
                rejection = status.by(name)
                if status.code is not Code.UNSCHEDULABLE:
                    return PreFilterOutcome(_last_word(name, rejection))
                continue
            if result is not None and result.node_names is not None:
                outcome = _narrow(outcome, name, result.node_names)
                if not outcome.node_names:
                    return outcome
        return outcome if rejection is None else replace(outcome, status=rejection)

    def _ask(
        self, plugin: PreFilterPlugin, name: str, state: CycleState, pod: Pod, nodes: NodesView
    ) -> tuple[PreFilterResult | None, Status | None]:
        guard = self._calls.guard
        answer: object = guard.call(name, PRE_FILTER, plugin.pre_filter, state, pod, nodes)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise guard.bad_answer(name, PRE_FILTER, answer, "a pair (PreFilterResult or None, Status or None)")
        result, status = answer
        if result is not None and not is_narrowing(result):
            raise guard.bad_answer(name, PRE_FILTER, result, "a PreFilterResult with a set of names, or None")
        if status is not None:
            status = guard.status(name, PRE_FILTER, status)
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(PRE_FILTER, name, code_name(status), guard.last_s)
        return result, status

    def follows_pods(self, state: CycleState) -> bool:
        """Say whether any plugin that takes part has to be told when pods come to a node or leave it."""
        skipped = state.skip_filter_plugins
        return any(p.name not in skipped for p in self._adders) or any(p.name not in skipped for p in self._removers)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Tell the plugins that ``added`` now counts as running on ``node``; an Error ends the evaluation."""
        for plugin in self._adders:
            if plugin.name in state.skip_filter_plugins:
                continue
            status = self._extend(ADD_POD, plugin.name, plugin.add_pod, state, pod, added, node)
            if status is not None:
                return status
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Tell the plugins that ``removed`` counts as gone from ``node``; an Error ends the evaluation."""
        for plugin in self._removers:
            if plugin.name in state.skip_filter_plugins:
                continue
            status = self._extend(REMOVE_POD, plugin.name, plugin.remove_pod, state, pod, removed, node)
            if status is not None:
                return status
        return None

    def _extend(
        self, point: str, name: str, function: Callable[..., Status | None], state: CycleState, *args: Pod | NodeView
    ) -> Status | None:
        guard = self._calls.guard
        try:
            status = guard.status(name, point, guard.call(name, point, function, state, *args))
        except PluginFault as fault:
            return fault.status(_EXTENSION_WORDINGS[point])
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(point, name, code_name(status), guard.last_s)
        return None if status is None else failed(_EXTENSION_WORDINGS[point] % name, name, status)


def _last_word(name: str, status: Status) -> Status:
    """Return what ends the attempt: that no eviction would help, or an Error."""
    return status if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else failed(_WORDING % name, name, status)


def is_narrowing(result: object) -> bool:
    """Say whether this can stand in a PreFilter plugin's answer; a list of names cannot be met with others' sets."""
    if not isinstance(result, PreFilterResult):
        return result is None
    return isinstance(result.node_names, frozenset | set | None)


def _narrow(outcome: PreFilterOutcome, plugin: str, names: frozenset[str]) -> PreFilterOutcome:
    before = outcome.node_names
    both = names if before is None else before & names
    plugins = tuple(sorted({*outcome.narrowed_by, plugin}))
    status = None if both else _no_node_left(plugins)
    return PreFilterOutcome(status, both, plugins)


def _no_node_left(plugins: tuple[str, ...]) -> Status:
    if len(plugins) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")
