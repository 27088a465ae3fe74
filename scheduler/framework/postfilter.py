"""PostFilter: no node fits; plugins may make room for later or say more.

A plugin that succeeds, fails or answers "unresolvable" ends the point; after a plain rejection the next one is asked
and the reasons add up. A nomination made by a plugin that rejected is kept. Source: ``RunPostFilterPlugins``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.api import Code, CycleState, Pod, PostFilterPlugin, PostFilterResult, Status
from scheduler.framework.calls import Calls
from scheduler.framework.guard import PluginFault, code_name
from scheduler.framework.points import POST_FILTER

__all__ = ["PostFilterPoint"]

_WORDING = 'running PostFilter plugin "%s"'

_Answer = tuple[PostFilterResult | None, Status | None]


class PostFilterPoint:
    """The PostFilter plugins of one profile, in order."""

    __slots__ = ("_calls", "plugins")

    def __init__(self, plugins: Sequence[PostFilterPlugin], calls: Calls) -> None:
        self.plugins = tuple(plugins)
        self._calls = calls

    def run(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> _Answer:
        """Run the plugins; the status's message goes to the pod's owner."""
        started_s = self._calls.perf_counter()
        try:
            result, status = self._run(state, pod, statuses)
        except PluginFault as fault:
            result, status = None, fault.status(_WORDING)
        self._calls.observe(POST_FILTER, status, started_s)
        return result, status

    def _run(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> _Answer:
        kept: PostFilterResult | None = None
        reasons: list[str] = []
        rejector = ""
        for plugin in self.plugins:
            name = plugin.name
            result, status = self._ask(plugin, name, state, pod, statuses)
            if status is None:
                return result, None
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return result, status.by(name)
            if not status.is_rejected:
                return None, Status(Code.ERROR, (status.message,), plugin=name, cause=status.cause)
            if result is not None and result.nominated_node is not None:
                kept = result
            reasons += status.reasons
            rejector = rejector or name
        return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), plugin=rejector)

    def _ask(
        self, plugin: PostFilterPlugin, name: str, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
    ) -> _Answer:
        guard = self._calls.guard
        answer: object = guard.call(name, POST_FILTER, plugin.post_filter, state, pod, statuses)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise guard.bad_answer(name, POST_FILTER, answer, "a pair (PostFilterResult or None, Status or None)")
        result = answer[0]
        if result is not None and not isinstance(result, PostFilterResult):
            raise guard.bad_answer(name, POST_FILTER, result, "a PostFilterResult or None")
        status = guard.status(name, POST_FILTER, answer[1])
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(POST_FILTER, name, code_name(status), guard.last_s)
        return result, status
