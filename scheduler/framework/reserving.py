"""Reserve, Unreserve and Permit: the last words of the scheduling cycle, once a node is chosen.

Source: ``RunReservePluginsReserve``, ``RunReservePluginsUnreserve``, ``RunPermitPlugins``.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import Code, CycleState, PermitPlugin, Pod, ReservePlugin, Status
from scheduler.framework.calls import Calls, failed
from scheduler.framework.guard import PluginFault, code_name
from scheduler.framework.points import PERMIT, RESERVE, UNRESERVE

__all__ = ["MAX_PERMIT_WAIT_S", "PermitPoint", "ReservePoint"]

MAX_PERMIT_WAIT_S = 15 * 60.0
"""Longest wait that a Permit plugin is granted."""

_RESERVE_WORDING = 'running Reserve plugin "%s"'
_PERMIT_WORDING = 'running Permit plugin "%s"'
_WAIT_REASON = "one or more plugins asked to wait and no plugin rejected pod"


class ReservePoint:
    """The Reserve plugins of one profile, in order."""

    __slots__ = ("_calls", "plugins")

    def __init__(self, plugins: Sequence[ReservePlugin], calls: Calls) -> None:
        self.plugins = tuple(plugins)
        self._calls = calls

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Run all plugins up to the first that objects; after an objection the caller must ``unreserve``."""
        started_s = self._calls.perf_counter()
        try:
            status = self._reserve(state, pod, node_name)
        except PluginFault as fault:
            status = fault.status(_RESERVE_WORDING)
        self._calls.observe(RESERVE, status, started_s)
        return status

    def _reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        guard = self._calls.guard
        for plugin in self.plugins:
            name = plugin.name
            status = guard.status(name, RESERVE, guard.call(name, RESERVE, plugin.reserve, state, pod, node_name))
            if state.record_plugin_metrics:
                self._calls.metrics.plugin_duration(RESERVE, name, code_name(status), guard.last_s)
            if status is not None:
                return status.by(name) if status.is_rejected else failed(_RESERVE_WORDING % name, name, status)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Run all plugins in reverse order; one that raises does not keep the others from giving back."""
        started_s = self._calls.perf_counter()
        guard = self._calls.guard
        for plugin in reversed(self.plugins):
            try:
                guard.call(plugin.name, UNRESERVE, plugin.unreserve, state, pod, node_name)
            except PluginFault:
                continue  # counted and logged by the guard; there is no one to tell
            if state.record_plugin_metrics:
                self._calls.metrics.plugin_duration(UNRESERVE, plugin.name, "Success", guard.last_s)
        self._calls.observe(UNRESERVE, None, started_s)


class PermitPoint:
    """The Permit plugins of one profile, in order."""

    __slots__ = ("_calls", "plugins")

    def __init__(self, plugins: Sequence[PermitPlugin], calls: Calls) -> None:
        self.plugins = tuple(plugins)
        self._calls = calls

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, dict[str, float]]:
        """Run all plugins up to the first that objects.

        Returns:
            None, a rejection, an Error, or a Wait with the longest wait of each plugin in seconds.
        """
        started_s = self._calls.perf_counter()
        waits: dict[str, float] = {}
        try:
            status = self._permit(state, pod, node_name, waits)
        except PluginFault as fault:
            status = fault.status(_PERMIT_WORDING)
        self._calls.observe(PERMIT, status, started_s)
        return status, waits

    def _permit(self, state: CycleState, pod: Pod, node_name: str, waits: dict[str, float]) -> Status | None:
        waiting: Status | None = None
        for plugin in self.plugins:
            name = plugin.name
            status, wait_s = self._ask(plugin, name, state, pod, node_name)
            if status is None:
                continue
            if status.code is Code.WAIT:
                waits[name] = min(wait_s, MAX_PERMIT_WAIT_S)
                waiting = status
            elif status.is_rejected:
                return status.by(name)
            else:
                return failed(_PERMIT_WORDING % name, name, status)
        return None if waiting is None else Status(Code.WAIT, (*waiting.reasons, _WAIT_REASON))

    def _ask(
        self, plugin: PermitPlugin, name: str, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status | None, float]:
        guard = self._calls.guard
        answer: object = guard.call(name, PERMIT, plugin.permit, state, pod, node_name)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise guard.bad_answer(name, PERMIT, answer, "a pair (Status or None, seconds)")
        status, wait_s = guard.status(name, PERMIT, answer[0]), answer[1]
        if not isinstance(wait_s, int | float) or wait_s != wait_s:  # noqa: PLR0124  the test for NaN
            raise guard.bad_answer(name, PERMIT, wait_s, "a number of seconds")
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(PERMIT, name, code_name(status), guard.last_s)
        return status, float(wait_s)
