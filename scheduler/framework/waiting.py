"""Waiting pods: those that Permit plugins put on hold, until allowed, rejected or timed out.

    add ──▶ WAITING ──allow by every pending plugin──▶ ALLOWED   (result: success)
               ├──reject by any plugin───────────────▶ REJECTED  (Unschedulable, that plugin)
               ├──preempt────────────────────────────▶ REJECTED  (Error: retried, not unschedulable)
               └──deadline of a pending plugin───────▶ REJECTED  (Unschedulable, that plugin)

The first result stands. Nothing here waits or owns a timer: the binding cycle subscribes to the result, the driver
asks ``next_timer_s`` when to call ``expire``. Single-threaded like the rest of the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from scheduler.api import Clock, Pod, Status
from scheduler.framework.durations import go_duration

__all__ = ["Deadline", "PodOnHold", "WaitingPods"]


@dataclass(frozen=True, slots=True)
class Deadline:
    """How long one plugin lets the pod wait.

    Attributes:
        at_s: when the wait ends, on the engine's clock.
        wait_s: the length of the wait, for the message.
    """

    at_s: float
    wait_s: float


class PodOnHold:
    """One waiting pod; implements the ``WaitingPod`` that plugins see.

    Attributes:
        since_s: when it began to wait, on the engine's clock.
        is_done: whether there is a result.
        result: None if allowed, else the rejection; meaningful once ``is_done``.
    """

    __slots__ = ("_pending", "_pod", "_subscriber", "is_done", "result", "since_s")

    def __init__(self, pod: Pod, pending: Mapping[str, Deadline], since_s: float) -> None:
        self._pod = pod
        self._pending = dict(pending)
        self._subscriber: Callable[[], None] | None = None
        self.since_s = since_s
        self.is_done = False
        self.result: Status | None = None

    @property
    def pod(self) -> Pod:
        """Return the pod, with the node it is assumed on."""
        return self._pod

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed it yet."""
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        """Let the pod go on as far as ``plugin`` is concerned; the last one lets it go."""
        self._pending.pop(plugin, None)
        if not self._pending:
            self._finish(None)

    def reject(self, plugin: str, message: str) -> None:
        """Send the pod back to the queue as unschedulable because of ``plugin``."""
        self._finish(Status.unschedulable(message).by(plugin))

    def preempt(self, plugin: str, message: str) -> None:
        """Send the pod back to the queue to be retried after a back-off; it is not called unschedulable."""
        self._finish(Status.error(f"waiting on permit for pod: {message}").by(plugin))

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once there is a result; at once if there is one already."""
        if self.is_done:
            callback()
        else:
            self._subscriber = callback

    @property
    def next_deadline_s(self) -> float | None:
        """Return when the first pending plugin runs out of patience."""
        return min((d.at_s for d in self._pending.values()), default=None)

    def expire(self, now_s: float) -> None:
        """Reject the pod if a plugin's time is up."""
        due = [(d.at_s, plugin, d) for plugin, d in self._pending.items() if d.at_s <= now_s]
        if due:
            _, plugin, deadline = min(due, key=lambda entry: entry[:2])
            waited = go_duration(deadline.wait_s)
            self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _finish(self, result: Status | None) -> None:
        if self.is_done:
            return
        self.is_done = True
        self.result = result
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber()


class WaitingPods:
    """All pods on hold, of all profiles, by UID."""

    __slots__ = ("_clock", "_pods")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, PodOnHold] = {}

    def add(self, pod: Pod, waits: Mapping[str, float]) -> PodOnHold:
        """Put ``pod`` on hold for at most ``waits[plugin]`` seconds a plugin."""
        now_s = self._clock.now()
        pending = {plugin: Deadline(now_s + wait_s, wait_s) for plugin, wait_s in waits.items()}
        held = self._pods[pod.uid] = PodOnHold(pod, pending, now_s)
        return held

    def get(self, uid: str) -> PodOnHold | None:
        """Return the pod on hold, or None."""
        return self._pods.get(uid)

    def remove(self, uid: str) -> None:
        """Forget the pod; its binding cycle goes on or ends."""
        self._pods.pop(uid, None)

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        """Reject the pod in the name of ``plugin``; False if it is not on hold (any more)."""
        held = self._pods.get(uid)
        if held is None or held.is_done:
            return False
        held.reject(plugin, message)
        return True

    def next_timer_s(self) -> float | None:
        """Return when ``expire`` has something to do, on the engine's clock; None: not by itself."""
        deadlines = (held.next_deadline_s for held in self._pods.values() if not held.is_done)
        return min((at_s for at_s in deadlines if at_s is not None), default=None)

    def expire(self, now_s: float) -> None:
        """Reject every pod whose time is up."""
        for held in list(self._pods.values()):
            if not held.is_done:
                held.expire(now_s)

    def __iter__(self) -> Iterator[PodOnHold]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)
