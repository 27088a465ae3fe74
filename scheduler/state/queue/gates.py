"""Gates: PreEnqueue plugins decide whether a pod may enter activeQ or backoffQ at all.

A gated pod waits in unschedulablePods and hears only of the events that its gating plugin registered. When one comes,
the gating plugin is asked first; the others follow only if it lets the pod in (spec §2.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler.api.events import ClusterEvent
from scheduler.api.queued import QueuedPodInfo
from scheduler.api.status import Code, Status
from scheduler.model.pod import Pod
from scheduler.state.queue.metrics import QueueMetrics
from scheduler.state.queue.profile import PreEnqueue, QueueProfile
from scheduler.telemetry.logging import get_logger

__all__ = ["Gates"]

_log = get_logger(__name__)

_POINT = "PreEnqueue"
_SAMPLED = 10
"""One run in so many is timed plugin by plugin; differs: every tenth, not each with a chance of a tenth."""


class Gates:
    """Runs the PreEnqueue plugins of a pod's profile and writes the outcome into its record."""

    __slots__ = ("_events_of", "_metrics", "_perf_counter", "_plugins", "_runs")

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        *,
        events_of: Callable[[str], tuple[ClusterEvent, ...]],
        metrics: QueueMetrics,
        perf_counter: Callable[[], float],
    ) -> None:
        self._plugins = {name: tuple(profile.pre_enqueue) for name, profile in profiles.items()}
        self._events_of = events_of
        self._metrics = metrics
        self._perf_counter = perf_counter
        self._runs = 0

    def run(self, info: QueuedPodInfo) -> None:
        """Ask the plugins; afterwards ``info.is_gated`` says whether one of them keeps the pod out.

        A pod of an unknown profile passes. The rejector sets keep a gating plugin after it has let the pod in; they
        are cleared when an attempt ends (parity).
        """
        plugins = self._plugins.get(info.pod.spec.scheduler_name)
        if not plugins:
            info.gating_plugin = ""
            return
        started_s = self._perf_counter()
        self._runs += 1
        if info.gating_plugin:
            # Stable sort: the plugin that gates now comes to the front, the others keep their order.
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin.name != info.gating_plugin))
        if all(self._lets_in(plugin, info) for plugin in plugins):
            info.gating_plugin = ""
        self._metrics.pre_enqueue_duration(info.pod.spec.scheduler_name, self._perf_counter() - started_s)

    def _lets_in(self, plugin: PreEnqueue, info: QueuedPodInfo) -> bool:
        status = self._timed(plugin, info.pod) if not self._runs % _SAMPLED else _ask(plugin, info.pod)
        if status is None or status.code is Code.SUCCESS:
            return True
        name = plugin.name
        if status.code is Code.ERROR:
            _log.error("pre-enqueue plugin failed, pod gated", plugin=name, pod=info.pod.pod_key, error=status.message)
        if name not in info.unschedulable_plugins and name not in info.pending_plugins:
            self._metrics.unschedulable_pods(name, info.pod.spec.scheduler_name, 1)
        info.unschedulable_plugins.add(name)
        info.gating_plugin = name
        info.gating_plugin_events = self._events_of(name)
        return False

    def _timed(self, plugin: PreEnqueue, pod: Pod) -> Status | None:
        started_s = self._perf_counter()
        status = _ask(plugin, pod)
        code = Code.SUCCESS if status is None else status.code
        self._metrics.plugin_duration(_POINT, plugin.name, str(code), self._perf_counter() - started_s)
        return status


def _ask(plugin: PreEnqueue, pod: Pod) -> Status | None:
    try:
        return plugin.pre_enqueue(pod)
    except Exception as error:  # noqa: BLE001  a plugin's bug must not stop the intake of pods
        return Status.error(repr(error), error)
