"""Queueing hints: is this event worth a retry of this pod?

Each profile's plugins have registered the events that may undo their rejections, some with a hint function that looks
at the changed object. An event asks only the plugins that rejected the pod:

    no rejectors                     -> after back-off   (the pod failed by an error)
    event for all pods               -> after back-off   (for one pod only: the others skip)
    no such profile                  -> after back-off
    a Pending plugin says Queue      -> immediately, whatever its back-off
    another rejector says Queue      -> after back-off
    nobody                           -> skip

A hint that raises counts as Queue: a bug in a hint may cost a vain attempt but never strands a pod. Source:
``isPodWorthRequeuing`` and ``buildQueueingHintMap``, v1.36.

differs: a hint with an index is not asked about pods that it would answer Skip for (``listeners``), so they are not in
``queueing_hint_execution_duration_seconds``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from scheduler.api.events import (
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    HintIndex,
    IndexedRegistration,
    QueueingHint,
    QueueingHintFn,
)
from scheduler.api.queued import QueuedPodInfo
from scheduler.model.pod import Pod
from scheduler.state.queue.in_flight import Happening
from scheduler.state.queue.metrics import QueueMetrics
from scheduler.state.queue.profile import QueueProfile
from scheduler.telemetry.logging import get_logger

__all__ = ["HINT_ERROR", "Asked", "HintMap", "QueueingHints", "Strategy"]

HINT_ERROR = "Error"
"""Metric value of a hint that raised; the others are ``QueueingHint`` values."""

_NODE_TAINT_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)

_log = get_logger(__name__)


class Strategy(enum.Enum):
    """What becomes of a pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "after back-off"
    IMMEDIATELY = "immediately"


class Asked(NamedTuple):
    """A plugin that is asked about an event.

    Attributes:
        plugin: its name.
        indexes: which of the pods that it rejected it is asked about: those that one of these finds; None: all.
    """

    plugin: str
    indexes: tuple[HintIndex, ...] | None


class _Call(NamedTuple):
    plugin: str
    hint: QueueingHintFn | None
    hint_index: HintIndex | None


class HintMap:
    """One profile's registrations, with the answers to "who wants this event" remembered."""

    __slots__ = ("_calls", "_indexes", "registrations")

    def __init__(self, registrations: Iterable[tuple[str, EventRegistration]]) -> None:
        given = list(registrations)
        self.registrations = given + _missing_taint_registrations(given)
        self._calls: dict[ClusterEvent, tuple[_Call, ...]] = {}
        self._indexes: dict[str, tuple[HintIndex, ...]] = {}
        for plugin, registration in self.registrations:
            index = _index_of(registration)
            known = self._indexes.get(plugin, ())
            if index is not None and index not in known:
                self._indexes[plugin] = (*known, index)

    def indexes(self, plugin: str) -> tuple[HintIndex, ...]:
        """Return the indexes of a plugin's hints."""
        return self._indexes.get(plugin, ())

    def calls(self, event: ClusterEvent) -> tuple[_Call, ...]:
        """Return the hints of the registrations that cover ``event``."""
        calls = self._calls.get(event)
        if calls is None:
            calls = tuple(
                _Call(plugin, registration.hint, _index_of(registration))
                for plugin, registration in self.registrations
                if registration.event.matches(event)
            )
            self._calls[event] = calls
        return calls


def _index_of(registration: EventRegistration) -> HintIndex | None:
    return registration.index if isinstance(registration, IndexedRegistration) else None


def _missing_taint_registrations(given: Sequence[tuple[str, EventRegistration]]) -> list[tuple[str, EventRegistration]]:
    """Return registrations for changed taints for plugins that want to hear of added nodes but not of those.

    parity: upstream adds them up to v1.36 (k/k#109437); a plugin written against that may rely on it.
    """
    actions: dict[str, ActionType] = {}
    for plugin, registration in given:
        if registration.event.resource is EventResource.NODE:
            actions[plugin] = actions.get(plugin, ActionType(0)) | registration.event.action
    return [
        (plugin, EventRegistration(_NODE_TAINT_UPDATE))
        for plugin, action in actions.items()
        if action & ActionType.ADD and not action & ActionType.UPDATE_NODE_TAINT
    ]


class QueueingHints:
    """The hints of all profiles."""

    __slots__ = ("_asked", "_failed", "_maps", "_metrics", "_perf_counter")

    def __init__(
        self, profiles: Mapping[str, QueueProfile], *, metrics: QueueMetrics, perf_counter: Callable[[], float]
    ) -> None:
        self._maps = {name: HintMap(profile.registrations) for name, profile in profiles.items()}
        self._metrics = metrics
        self._perf_counter = perf_counter
        self._asked: dict[ClusterEvent, dict[str, Asked]] = {}
        self._failed: set[tuple[str, str]] = set()

    def asked(self, event: ClusterEvent) -> Mapping[str, Asked]:
        """Return the plugins that registered ``event`` in any profile, by name, in a fixed order."""
        asked = self._asked.get(event)
        if asked is None:
            asked = self._asked[event] = self._find_asked(event)
        return asked

    def _find_asked(self, event: ClusterEvent) -> dict[str, Asked]:
        asked: dict[str, Asked] = {}
        for hint_map in self._maps.values():
            for plugin, _, index in hint_map.calls(event):
                known = asked[plugin].indexes if plugin in asked else ()
                # One hint without an index, in any profile, is enough to ask about all pods.
                indexes = None if index is None or known is None else tuple(dict.fromkeys((*known, index)))
                asked[plugin] = Asked(plugin, indexes)
        return asked

    def indexes(self, profile: str, plugin: str) -> tuple[HintIndex, ...] | None:
        """Return the indexes of a plugin's hints in a profile; None if there is no such profile."""
        hint_map = self._maps.get(profile)
        return None if hint_map is None else hint_map.indexes(plugin)

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """Return the events that a plugin registered in any profile."""
        events = {
            registration.event: None
            for hint_map in self._maps.values()
            for name, registration in hint_map.registrations
            if name == plugin
        }
        return tuple(events)

    def strategy(self, info: QueuedPodInfo, happening: Happening) -> Strategy:
        """Return what becomes of the pod; asks no more hints than the answer needs."""
        unschedulable, pending = info.unschedulable_plugins, info.pending_plugins
        if not unschedulable and not pending:
            return Strategy.AFTER_BACKOFF
        event = happening.event
        if event.is_wildcard:
            return _wildcard_strategy(info, happening.new)
        hint_map = self._maps.get(info.pod.spec.scheduler_name)
        if hint_map is None:
            return Strategy.AFTER_BACKOFF
        answer = Strategy.SKIP
        for call in hint_map.calls(event):
            is_pending = call.plugin in pending
            if not (is_pending or call.plugin in unschedulable) or not self._says_queue(call, info.pod, happening):
                continue
            if is_pending:
                return Strategy.IMMEDIATELY
            if not pending:
                return Strategy.AFTER_BACKOFF
            answer = Strategy.AFTER_BACKOFF
        return answer

    def strategy_of_all(self, info: QueuedPodInfo, happenings: Iterable[Happening]) -> Strategy:
        """Return what becomes of a pod after several events: the strongest answer."""
        answer = Strategy.SKIP
        for happening in happenings:
            one = self.strategy(info, happening)
            if one is Strategy.IMMEDIATELY:
                return one
            if one is Strategy.AFTER_BACKOFF:
                if not info.pending_plugins:
                    return one
                answer = one
        return answer

    def _says_queue(self, call: _Call, pod: Pod, happening: Happening) -> bool:
        if call.hint is None:
            self._metrics.hint_duration(call.plugin, happening.label, QueueingHint.QUEUE.value, 0.0)
            return True
        started_s = self._perf_counter()
        try:
            answer = call.hint(pod, happening.old, happening.new)
        except Exception as error:  # noqa: BLE001  a plugin's bug must not strand the pod
            answer, label = QueueingHint.QUEUE, HINT_ERROR
            self._report(call.plugin, pod, happening.label, error)
        else:
            # Whatever is not a clear Skip counts as Queue, for the same reason.
            label = (QueueingHint.SKIP if answer is QueueingHint.SKIP else QueueingHint.QUEUE).value
        self._metrics.hint_duration(call.plugin, happening.label, label, self._perf_counter() - started_s)
        return answer is not QueueingHint.SKIP

    def _report(self, plugin: str, pod: Pod, label: str, error: Exception) -> None:
        # differs: upstream logs every failure; a broken hint and 10,000 waiting pods would flood the log.
        first = (plugin, label) not in self._failed
        self._failed.add((plugin, label))
        log = _log.error if first else _log.debug
        log("queueing hint failed, pod queued", plugin=plugin, event_label=label, pod=pod.pod_key, error=repr(error))


def _wildcard_strategy(info: QueuedPodInfo, target: object | None) -> Strategy:
    """Return the answer to an event for all pods, or for the one pod it carries."""
    if target is None or (isinstance(target, Pod) and target.metadata.uid == info.pod.metadata.uid):
        return Strategy.AFTER_BACKOFF
    return Strategy.SKIP
