"""Framework: the plugins of one profile, by extension point, and how each point is run.

One object for each ``schedulerName``. It knows no plugin by name: it gets instances and an order, and finds out by
base class what each can do. The rules of a point live in the module of that point (``prefilter``, ``filtering``,
``postfilter``, ``scoring``, ``reserving``, ``binding``); this module puts them together and registers hints.

All methods are for the scheduling thread; ``run_pre_bind``, ``run_bind`` and ``run_post_bind`` are coroutines that the
binding cycle awaits there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    NodesView,
    NodeView,
    PermitPlugin,
    Plugin,
    Pod,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ReservePlugin,
    Spare,
    Status,
)
from scheduler.framework.binding import BindingPoints, RunBlocking, run_inline
from scheduler.framework.calls import Calls
from scheduler.framework.filtering import FilterOutcome, FilterPoint
from scheduler.framework.guard import DEFAULT_BUDGET_S, Guard, PluginFault
from scheduler.framework.metrics import FrameworkMetrics, NullFrameworkMetrics
from scheduler.framework.nominations import Nominations, NoNominations
from scheduler.framework.points import POINTS, PRE_ENQUEUE, QUEUE_SORT
from scheduler.framework.postfilter import PostFilterPoint
from scheduler.framework.prefilter import PreFilterOutcome, PreFilterPoint
from scheduler.framework.reserving import PermitPoint, ReservePoint
from scheduler.framework.reuse import ReusePoint
from scheduler.framework.scoring import ScorePoint, Scores
from scheduler.framework.standing import Answers, StandingPoint
from scheduler.framework.waiting import PodOnHold, WaitingPods
from scheduler.state.queue.profile import QueueProfile
from scheduler.telemetry.logging import get_logger

__all__ = ["ALL_EVENTS", "EXTENDER", "Framework", "PluginLife", "Shielding"]

EXTENDER = "Extender"
"""Pseudo plugin that stands for all extenders in rejections and registrations."""

_log = get_logger(__name__)

P = TypeVar("P", bound=Plugin)

# parity: no wildcard, so that the watches and handlers of all these kinds are set up (UnrollWildCardResource).
ALL_EVENTS: tuple[EventRegistration, ...] = tuple(
    EventRegistration(ClusterEvent(resource, ActionType.ALL))
    for resource in (
        EventResource.POD,
        EventResource.NODE,
        EventResource.PERSISTENT_VOLUME,
        EventResource.PERSISTENT_VOLUME_CLAIM,
        EventResource.CSI_NODE,
        EventResource.CSI_DRIVER,
        EventResource.CSI_STORAGE_CAPACITY,
        EventResource.STORAGE_CLASS,
        EventResource.RESOURCE_CLAIM,
        EventResource.DEVICE_CLASS,
    )
)
"""What a plugin that names no events is woken by."""

# Only the rejections of these points leave a pod waiting for an event.
_HINTED = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)


class PluginLife(Protocol):
    """What lives as long as a plugin: its work in the background."""

    def start(self) -> None:
        """Begin."""

    def close(self) -> None:
        """End."""


Shielding = Callable[[Mapping[str, Plugin], Guard], dict[str, Plugin]]
"""``shields(plugins, guard)``: returns the plugins, those of third parties behind shields (``framework.shield``)."""


class Framework:
    """One profile.

    Attributes:
        profile_name: schedulerName.
        percentage_of_nodes_to_score: the profile's own setting, or None.
        plugins: all instances by name.
        points: plugin names by extension point (snake case), in order; what ``/configz`` and explain show.
        waiting: the pods on hold in Permit, shared by all profiles.
        reuse: what the class cache asks the plugins.
        standing: what is asked of the plugins that read node objects alone.
        weights: of the Score plugins.
        bindings: binding cycles that have begun and not ended; a profile that was replaced is closed after the last.
    """

    def __init__(
        self,
        profile_name: str,
        plugins: Mapping[str, Plugin],
        points: Mapping[str, Sequence[str]],
        *,
        weights: Mapping[str, int] | None = None,
        waiting: WaitingPods,
        perf_counter: Callable[[], float],
        metrics: FrameworkMetrics | None = None,
        nominations: Nominations | None = None,
        run_blocking: RunBlocking = run_inline,
        percentage_of_nodes_to_score: int | None = None,
        has_extenders: bool = False,
        budget_s: float = DEFAULT_BUDGET_S,
        handles: Sequence[PluginLife] = (),
        shields: Shielding | None = None,
    ) -> None:
        self.profile_name = profile_name
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.points = {key: tuple(points.get(key, ())) for key in POINTS}
        self.waiting = waiting
        self._handles = tuple(handles)
        self.weights = dict(weights or {})
        self.bindings = 0
        self._has_extenders = has_extenders
        measured = NullFrameworkMetrics() if metrics is None else metrics
        guard = Guard(measured, perf_counter, budget_s=budget_s)
        self.plugins = dict(plugins) if shields is None else shields(plugins, guard)
        self._calls = calls = Calls(profile_name, guard, measured, perf_counter)
        self._pre_enqueue: list[PreEnqueuePlugin] = self._at("pre_enqueue")
        self._queue_sort: list[QueueSortPlugin] = self._at("queue_sort")
        self._pre_filter = PreFilterPoint(self._at("pre_filter"), calls)
        self._filter = FilterPoint(self._at("filter"), calls, self._pre_filter, nominations or NoNominations())
        self._post_filter = PostFilterPoint(self._at("post_filter"), calls)
        self._score = ScorePoint(self._at("pre_score"), self._at("score"), weights or {}, calls)
        deciding = self._pre_filter.plugins, self._filter.plugins, self._at("pre_score"), self._score.plugins
        self.reuse = ReusePoint(*deciding, weights, calls)
        self.standing = StandingPoint(*deciding, weights, calls)
        self._reserve = ReservePoint(self._at("reserve"), calls)
        self._permit = PermitPoint(self._at("permit"), calls)
        self._binding = BindingPoints(
            self._at("pre_bind"), self._at("bind"), self._at("post_bind"), calls, run_blocking
        )

    def _at(self, key: str) -> list[Any]:
        return [self.plugins[name] for name in self.points[key]]

    def set_nominations(self, nominations: Nominations) -> None:
        """Read nominations from the queue; called once it exists."""
        self._filter.set_nominations(nominations)

    # --- queue -------------------------------------------------------------------------------------------------------

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """Return the key by which the queue orders pods; a plugin that fails puts the pod behind all others."""
        plugin = self._queue_sort[0]
        try:
            return (0, self._calls.guard.call(plugin.name, QUEUE_SORT, plugin.sort_key, info))
        except PluginFault:
            return (1, info.timestamp_s)

    def queue_profile(self) -> QueueProfile:
        """Return what the queue needs of this profile: guarded PreEnqueue plugins, and who registers which events."""
        registrations = [(EXTENDER, event) for event in ALL_EVENTS] if self._has_extenders else []
        for name, plugin in self.plugins.items():
            if isinstance(plugin, _HINTED):
                registrations += [(name, event) for event in _events_of(plugin)]
        return QueueProfile([_GuardedPreEnqueue(p, self._calls.guard) for p in self._pre_enqueue], registrations)

    # --- scheduling cycle --------------------------------------------------------------------------------------------

    @property
    def is_whole_cluster(self) -> bool:
        """Say whether every Filter and Score plugin works on columns, so that judging all nodes is cheap."""
        return self._filter.is_whole_cluster and self._score.is_whole_cluster

    @property
    def has_filter_plugins(self) -> bool:
        """Say whether any plugin filters."""
        return bool(self._filter.plugins)

    @property
    def has_post_filter_plugins(self) -> bool:
        """Say whether anything can be done for a pod that fits nowhere."""
        return bool(self._post_filter.plugins)

    @property
    def has_score_plugins(self) -> bool:
        """Say whether any plugin scores."""
        return bool(self._score.plugins)

    def run_pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> PreFilterOutcome:
        """Run PreFilter over all nodes; ``answers``, here and below, spare the calls of plugins that they cover."""
        return self._pre_filter.run(state, pod, nodes, answers)

    def run_pre_filter_add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Tell the plugins that ``added`` counts as running on ``node`` (a copy that has it already)."""
        return self._pre_filter.add_pod(state, pod, added, node)

    def run_pre_filter_remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Tell the plugins that ``removed`` counts as gone from ``node`` (a copy that lacks it already)."""
        return self._pre_filter.remove_pod(state, pod, removed, node)

    def run_filter(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> FilterOutcome | Status:
        """Filter all rows of ``nodes``, nominated pods considered; returns an Error if a plugin fails."""
        return self._filter.run_all(state, pod, nodes, answers)

    def observe(self, point: str, status: Status | None, started_s: float) -> None:
        """Observe the duration of a point whose parts the caller ran (Filter)."""
        self._calls.observe(point, status, started_s)

    def run_filter_on_node(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Filter one node as it is."""
        return self._filter.run_node(state, pod, node)

    def run_filter_on_node_with_nominated_pods(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Filter one node with and without the pods nominated to it."""
        return self._filter.run_node_with_nominated(state, pod, node)

    def sparing(self, state: CycleState, pod: Pod) -> Spare | None:
        """Return the short cut of preemption's dry runs for this pod; None if there is none."""
        return self._filter.sparing(state, pod)

    def run_post_filter(
        self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Try to make room for a pod that fits nowhere."""
        return self._post_filter.run(state, pod, statuses)

    def run_pre_score(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> Status | None:
        """Prepare scoring of the feasible ``nodes``."""
        return self._score.run_pre_score(state, pod, nodes, answers)

    def run_score(
        self, state: CycleState, pod: Pod, nodes: NodesView, answers: Answers | None = None
    ) -> Scores | Status:
        """Score the feasible ``nodes``."""
        return self._score.run_score(state, pod, nodes, answers)

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Let the plugins take what the pod needs on the node."""
        return self._reserve.reserve(state, pod, node_name)

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Let the plugins give back, in reverse order."""
        self._reserve.unreserve(state, pod, node_name)

    def run_permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, dict[str, float]]:
        """Ask whether the pod may go on; a Wait comes with the longest wait of each plugin in seconds."""
        return self._permit.permit(state, pod, node_name)

    def hold(self, pod: Pod, waits: Mapping[str, float]) -> PodOnHold:
        """Put a pod on hold after a Wait."""
        return self.waiting.add(pod, waits)

    # --- binding cycle -----------------------------------------------------------------------------------------------

    def end_wait(self, pod: Pod, now_s: float) -> Status | None:
        """Take a pod off hold once its wait has a result; returns None if it may go on (or was never on hold)."""
        held = self.waiting.get(pod.uid)
        if held is None:
            return None
        self.waiting.remove(pod.uid)
        label = "Success" if held.result is None else str(held.result.code)
        self._calls.metrics.permit_wait(label, now_s - held.since_s)
        return held.result

    def run_pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Ask whether PreBind has work to do: None if yes, Skip if not, else an Error."""
        return self._binding.run_pre_flight(state, pod, node_name)

    async def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Run the PreBind plugins that have work to do."""
        return await self._binding.run_pre_bind(state, pod, node_name)

    def skip_pre_bind(self) -> None:
        """Pass PreBind because pre-flight said that nobody has work to do."""
        self._binding.skip_pre_bind()

    async def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Let the first Bind plugin that takes the pod bind it; Skip if none does."""
        return await self._binding.run_bind(state, pod, node_name)

    async def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Tell the PostBind plugins."""
        await self._binding.run_post_bind(state, pod, node_name)

    def start(self) -> None:
        """Begin what plugins want done in the background; called once the profile serves."""
        for handle in self._handles:
            handle.start()

    def close(self) -> None:
        """End what goes on in the background, close all plugins; one that raises does not keep others from closing."""
        for handle in self._handles:
            handle.close()
        for name, plugin in self.plugins.items():
            try:
                self._calls.guard.call(name, "Close", plugin.close)
            except PluginFault:
                continue  # counted and logged by the guard


class _GuardedPreEnqueue:
    """A PreEnqueue plugin whose faults are statuses."""

    __slots__ = ("_guard", "_plugin", "name")

    def __init__(self, plugin: PreEnqueuePlugin, guard: Guard) -> None:
        self._plugin = plugin
        self._guard = guard
        self.name = plugin.name

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Ask the plugin; a fault keeps the pod out, with the reason in its status."""
        try:
            answer = self._guard.call(self.name, PRE_ENQUEUE, self._plugin.pre_enqueue, pod)
            status = self._guard.status(self.name, PRE_ENQUEUE, answer)
        except PluginFault as fault:
            return fault.status('running PreEnqueue plugin "%s"')
        return None if status is None else status.by(self.name)


def _events_of(plugin: Plugin) -> Iterable[EventRegistration]:
    """Return the plugin's registrations; a plugin that names none, or cannot say, is woken by everything."""
    try:
        events: object = plugin.events()
    except Exception as error:  # noqa: BLE001  third-party code: a pod must not strand because of it
        _log.error("plugin could not name its events, all events assumed", plugin=plugin.name, error=repr(error))
        return ALL_EVENTS
    if events is None:
        return ALL_EVENTS
    known = list(cast("Iterable[object]", events)) if isinstance(events, Sequence) else [events]
    if not all(isinstance(event, EventRegistration) for event in known):
        _log.error("plugin named no valid events, all events assumed", plugin=plugin.name)
        return ALL_EVENTS
    return cast("list[EventRegistration]", known)
