"""Handle: the engine as a plugin sees it, one for each profile, on services that the composition root injects.

The services are filled in two steps, because plugins are made before the queue is (the queue needs their sort order):
``EngineServices`` is built first, and its queue-side fields are set once the queue exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from scheduler.api import (
    Clock,
    CycleState,
    Eviction,
    Lister,
    NodesView,
    NodeView,
    PluginMetrics,
    Pod,
    PodUid,
    PreemptionExtender,
    Random,
    Spare,
    Status,
    WaitingPod,
)
from scheduler.framework.background import Background, Refreshes, no_background
from scheduler.framework.metrics import FrameworkMetrics, NullFrameworkMetrics
from scheduler.framework.nominations import Nominations, NoNominations
from scheduler.framework.plugin_metrics import ProfileMetrics
from scheduler.framework.waiting import WaitingPods
from scheduler.model.meta import KubeObject
from scheduler.state.outbox import EmitEvent, PatchPodStatus
from scheduler.telemetry.plugin_families import PluginFamilies

__all__ = ["EngineServices", "Patch", "ProfileHandle", "WhatIf", "no_patch"]

K = TypeVar("K", bound=KubeObject)


class WhatIf(Protocol):
    """The part of a profile's Framework that evaluates single nodes."""

    def run_filter_on_node_with_nominated_pods(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Filter one node with and without the pods nominated to it."""

    def sparing(self, state: CycleState, pod: Pod) -> Spare | None:
        """Return the short cut of a dry run for this pod; None if there is none."""

    def run_pre_filter_add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Tell the PreFilter plugins of an additional pod."""

    def run_pre_filter_remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Tell the PreFilter plugins of a pod that is gone."""


def _gate_unknown(feature: str) -> bool:
    raise KeyError(feature)


Patch = Callable[[KubeObject, Mapping[str, Any]], Awaitable[KubeObject | Status]]
"""``patch(obj, changes)``: sends a merge patch; answers with the object as it is then, or an Error."""


async def no_patch(obj: KubeObject, changes: Mapping[str, Any]) -> KubeObject | Status:
    """Answer that nothing carries changes out: the default where there is no API server."""
    return Status.error(f"nothing carries out the change of {type(obj).__name__} {obj.key} ({', '.join(changes)})")


@dataclass(slots=True, kw_only=True)
class EngineServices:
    """What the engine offers to plugins.

    Attributes:
        clock: the engine's time.
        random: the engine's chance.
        nodes: returns the snapshot of the running cycle.
        lister: returns the store of a watched kind; raises LookupError if the kind is not watched.
        is_placed: says whether the cache has a pod.
        bind: posts a binding and settles its outcome.
        emit: records a Kubernetes event.
        call_soon_threadsafe: runs a callback on the scheduling thread; any thread may call it.
        waiting: the pods on hold.
        patch: sends a merge patch; answers with the changed object or an Error.
        sleep: waits.
        patch_status: has a pod's status written.
        evict: has pods removed in the background.
        is_enabled: says whether a feature gate is on; raises KeyError for an unknown one.
        metrics: observers of preemption.
        plugin_families: metrics that plugins make.
        background: calls functions now and then.
        extenders: the configured extenders in calling order.
        frameworks: the profiles, once they exist.
        nominations: the queue, once it exists.
        activate: the queue's method, once it exists.
    """

    clock: Clock
    random: Random
    nodes: Callable[[], NodesView]
    lister: Callable[[type[Any]], Lister[Any]]
    is_placed: Callable[[PodUid], bool]
    bind: Callable[[Pod, str], Awaitable[Status | None]]
    emit: Callable[[EmitEvent], None]
    call_soon_threadsafe: Callable[[Callable[[], None]], None]
    waiting: WaitingPods
    patch_status: Callable[[PatchPodStatus], None] = lambda patch: None  # noqa: ARG005  for tests of other things
    evict: Callable[[Eviction], None] = lambda eviction: None  # noqa: ARG005  for tests of other things
    is_enabled: Callable[[str], bool] = _gate_unknown
    metrics: FrameworkMetrics = field(default_factory=NullFrameworkMetrics)
    plugin_families: PluginFamilies = field(default_factory=PluginFamilies)
    background: Background = no_background
    extenders: Sequence[PreemptionExtender] = ()
    frameworks: Mapping[str, WhatIf] = field(default_factory=dict)
    patch: Patch = no_patch
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    nominations: Nominations = field(default_factory=NoNominations)
    activate: Callable[[Mapping[str, Pod]], None] = lambda pods: None  # noqa: ARG005  nothing waits before the queue exists


class ProfileHandle:
    """Implements ``scheduler.api.Handle`` for one plugin of one profile."""

    __slots__ = ("_profile_name", "_refreshes", "_services")

    def __init__(self, profile_name: str, services: EngineServices, plugin: str = "") -> None:
        self._profile_name = profile_name
        self._services = services
        self._refreshes = Refreshes(plugin, services.background, services.metrics)

    def start(self) -> None:
        """Begin what the plugin wants done in the background: its profile is complete."""
        self._refreshes.start()

    def close(self) -> None:
        """End what the plugin has done in the background."""
        self._refreshes.close()

    @property
    def profile_name(self) -> str:
        """Return the schedulerName of the profile."""
        return self._profile_name

    @property
    def clock(self) -> Clock:
        """Return the engine's clock."""
        return self._services.clock

    @property
    def random(self) -> Random:
        """Return the engine's source of chance."""
        return self._services.random

    @property
    def metrics(self) -> PluginMetrics:
        """Return what makes metrics of the plugin's own."""
        return ProfileMetrics(self._profile_name, self._services.plugin_families)

    def is_enabled(self, feature: str) -> bool:
        """Say whether a feature gate is on."""
        return self._services.is_enabled(feature)

    def nodes(self) -> NodesView:
        """Return the snapshot of the running cycle."""
        return self._services.nodes()

    def lister(self, kind: type[K]) -> Lister[K]:
        """Return the store of a watched kind."""
        return cast("Lister[K]", self._services.lister(kind))

    def is_placed(self, uid: PodUid) -> bool:
        """Say whether the cache has the pod, bound or assumed."""
        return self._services.is_placed(uid)

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        """Return the pods nominated to run on the node."""
        return tuple(self._services.nominations.nominated_pods_for_node(node_name))

    def clear_nomination(self, pod: Pod) -> None:
        """Have the pod's nomination taken out of its status."""
        self._services.patch_status(PatchPodStatus(pod, None, ""))

    def run_filters(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Filter one node with and without the pods nominated to it."""
        return self._services.frameworks[self._profile_name].run_filter_on_node_with_nominated_pods(state, pod, node)

    def sparing(self, state: CycleState, pod: Pod) -> Spare | None:
        """Return the short cut of a dry run for this pod; None if there is none."""
        return self._services.frameworks[self._profile_name].sparing(state, pod)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Tell the PreFilter plugins of an additional pod."""
        return self._services.frameworks[self._profile_name].run_pre_filter_add_pod(state, pod, added, node)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Tell the PreFilter plugins of a pod that is gone."""
        return self._services.frameworks[self._profile_name].run_pre_filter_remove_pod(state, pod, removed, node)

    def extenders(self) -> Sequence[PreemptionExtender]:
        """Return the configured extenders in calling order."""
        return self._services.extenders

    def note_preemption(self) -> None:
        """Count an attempt to make room by preemption."""
        self._services.metrics.preemption_attempt()

    def evict(self, eviction: Eviction) -> None:
        """Have pods removed in the background."""
        self._services.metrics.preemption_victims(eviction.num_chosen)
        self._services.evict(eviction)

    def waiting_pod(self, uid: PodUid) -> WaitingPod | None:
        """Return a pod on hold in Permit."""
        return self._services.waiting.get(uid)

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """Return all pods on hold in Permit."""
        return list(self._services.waiting)

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Move these pods to the active queue."""
        self._services.activate(pods)

    def bind(self, pod: Pod, node_name: str) -> Awaitable[Status | None]:
        """Post the binding and settle its outcome."""
        return self._services.bind(pod, node_name)

    def patch(self, obj: K, changes: Mapping[str, Any]) -> Awaitable[K | Status]:
        """Change an object in the API server."""
        return cast("Awaitable[K | Status]", self._services.patch(obj, changes))

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait while others go on."""
        return self._services.sleep(seconds)

    def run_in_background(self, function: Callable[[], None], *, every_s: float) -> None:
        """Call ``function`` beside the scheduling of pods, now and then."""
        self._refreshes.add(function, every_s)

    def emit_event(self, regarding: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        """Record a Kubernetes event about the pod, in the name of the profile."""
        texts: tuple[object, ...] = (kind, reason, action, note)
        for text in texts:
            if not isinstance(text, str):  # found out here, it is this plugin's fault alone
                raise TypeError(f"kind, reason, action and note of an event are str, not {type(text).__name__}")
        self._services.emit(EmitEvent(regarding, self._profile_name, kind, reason, action, note))

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Run ``callback`` on the scheduling thread; any thread may call this."""
        self._services.call_soon_threadsafe(lambda: self._refreshes.call(callback))
