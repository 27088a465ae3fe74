"""Execution: the victims go in the background, and the pod waits at the gate meanwhile.

    start ──▶ WAITING (gate closed) ──▶ LAST (the last victim is asked to go) ──▶ ended (gate open)
                                          gate opens once that victim is gone, going, or on no node any more

Without the gate a pod that is woken by its first victim's end would be tried again before the others are gone, and
evict more pods. The state LAST exists because the watch may be faster than the answer to our request: an event that
found the gate closed would be lost, and nothing else would wake the pod. Source: ``executor.go``, KEP 4832.

A victim that is on its way to the node may go back to the queue, because its binding fails. Its place is free then, and
its own end, that of a pending pod, wakes nobody.

A victim is *leaving* from the decision on until the watch shows it terminating or gone, which may be after the answer.
"""

from __future__ import annotations

import functools
from collections import Counter

from scheduler.api import Eviction, Handle, Lister, Pod, Victims
from scheduler.telemetry.logging import get_logger

__all__ = ["Execution"]

_log = get_logger(__name__)


class Execution:
    """The preemptions under way of one profile.

    With ``is_gated`` off (SchedulerAsyncPreemption) pods are not held back. differs: victims are removed in the
    background even so, because a scheduling cycle does no I/O.
    """

    __slots__ = ("_handle", "_is_gated", "_last", "_leaving", "_plugin", "_pods", "_unseen")

    def __init__(self, handle: Handle, pods: Lister[Pod], plugin: str, *, is_gated: bool) -> None:
        self._handle = handle
        self._pods = pods
        self._plugin = plugin
        self._is_gated = is_gated
        # By UID of the preemptor: the last victim once only that one is left, None before.
        self._last: dict[str, Pod | None] = {}
        # By UID of the victim: how many preemptions under way evict it.
        self._leaving: Counter[str] = Counter()
        # By UID: victims that were deleted, which the watch has yet to show; swept at the end of each preemption.
        self._unseen: dict[str, Pod] = {}

    def start(self, pod: Pod, node_name: str, victims: Victims) -> None:
        """Have the victims removed and take back nominations of less important pods to the node."""
        # parity: pods that are terminating already are left alone.
        going = tuple(victim for victim in victims.pods if not victim.is_terminating)
        if not going and self._is_gated:
            return
        for other in self._handle.nominated_pods(node_name):
            if other.priority < pod.priority:
                # It may not fit any more; writing its status wakes it, so that it looks for another place at once.
                self._handle.clear_nomination(other)
        if going:
            self._last[pod.uid] = None
            self._leaving.update(victim.uid for victim in going)
            self._handle.evict(self._order(pod, node_name, going, len(victims.pods)))

    def is_waiting(self, pod: Pod) -> bool:
        """Say whether the pod must wait for its victims; always False without the gate."""
        uid = pod.uid
        if not self._is_gated or uid not in self._last:
            return False
        last = self._last[uid]
        if last is None:
            return True
        newest = self._pods.get(last.pod_key)
        if newest is None or newest.uid != last.uid or newest.is_terminating:
            return False
        # differs: upstream misses the end of a binding here.
        return self._handle.is_placed(last.pod_uid)

    def is_leaving(self, pod: Pod) -> bool:
        """Say whether the pod, which runs on some node, is being evicted, even if the watch does not show it yet."""
        uid = pod.uid
        return uid in self._leaving or uid in self._unseen

    def _order(self, pod: Pod, node_name: str, going: tuple[Pod, ...], num_chosen: int) -> Eviction:
        return Eviction(
            preemptor=pod,
            node_name=node_name,
            victims=going,
            num_chosen=num_chosen,
            plugin=self._plugin,
            on_last=functools.partial(self._only_last_left, pod, going[-1]),
            on_end=functools.partial(self._ended, pod, node_name, going),
        )

    def _only_last_left(self, pod: Pod, last: Pod) -> None:
        if pod.uid not in self._last:
            return
        self._last[pod.uid] = last
        if not self._handle.is_placed(last.pod_uid):
            self._handle.activate({pod.pod_key: pod})  # its place became free while the gate was closed

    def _ended(self, pod: Pod, node_name: str, going: tuple[Pod, ...], error: Exception | None, was_gone: bool) -> None:
        self._last.pop(pod.uid, None)
        self._leaving -= Counter(victim.uid for victim in going)  # drops what comes to zero
        deleted = () if error is not None else going
        candidates = (*self._unseen.values(), *deleted)
        self._unseen = {victim.uid: victim for victim in candidates if self._seems_to_run(victim)}
        woken: dict[str, Pod] = {}
        if error is not None:
            _log.warning("preemption failed", pod=pod.pod_key, error=str(error))
            # Others may have waited for the same victims; see DefaultPreemption._objection.
            woken = {other.pod_key: other for other in self._handle.nominated_pods(node_name)}
        if error is not None or was_gone:
            # Nothing may come that would wake the pod: a victim stayed, or its end was seen while the gate was closed.
            # differs: upstream wakes the pod in the first case only.
            self._handle.activate({**woken, pod.pod_key: pod})

    def _seems_to_run(self, victim: Pod) -> bool:
        """Say whether the watch shows the victim running as before; one called back on its way does not run."""
        newest = self._pods.get(victim.pod_key)
        if newest is None or newest.uid != victim.uid:
            return False
        return bool(newest.node_name) and not newest.is_terminating
