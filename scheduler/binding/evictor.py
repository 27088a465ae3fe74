"""Evictor: removes the victims of preemptions, beside the scheduling of other pods.

    all victims but the last, side by side ─▶ on_last ─▶ the last one ─▶ on_end
                    │ any fails                              │
                    └────────────────────────────────────────┴──▶ pause ─▶ on_end(error)

A victim that is on its way to a node is not deleted but sent back to the queue: one on hold in Permit, or one in
PreBind. One task an eviction; like the binder it decides nothing. Source: ``executor.go`` (``prepareCandidateAsync``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from scheduler.api import Eviction, Pod, PodUid
from scheduler.state.outbox import EmitEvent
from scheduler.telemetry.logging import get_logger

__all__ = ["EvictionHost", "EvictionMetrics", "Evictor", "Remove"]

_log = get_logger(__name__)

_SIDE_BY_SIDE = 16  # parity: the parallelism of upstream's loops
_PAUSE_S = 1.0
_SUCCESS, _ERROR = "success", "error"

Remove = Callable[[Pod, Pod], Awaitable[bool]]
"""``remove(victim, preemptor)``: deletes the pod; returns whether it was gone already, raises what went wrong."""


class EvictionHost(Protocol):
    """What the core does for evictions."""

    def preempt_waiting(self, uid: PodUid, plugin: str) -> bool:
        """Send a pod on hold back to the queue; False if it is not on hold (any more)."""

    def emit(self, event: EmitEvent) -> None:
        """Record a Kubernetes event."""


class EvictionMetrics(Protocol):
    """What is measured."""

    def preemption_executed(self, result: str, duration_s: float) -> None:
        """Observe an eviction that has ended: ``success`` or ``error``."""


class Evictor:
    """Runs evictions; keeps count of them for the drain at the end."""

    def __init__(
        self,
        host: EvictionHost,
        *,
        remove: Remove,
        cancel_binding: Callable[[PodUid, str], bool],
        metrics: EvictionMetrics,
        perf_counter: Callable[[], float],
        on_idle: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make an evictor.

        Args:
            host: the core.
            remove: deletes a pod.
            cancel_binding: ends the binding of a pod in PreBind with this message; False if it is not there.
            metrics: where durations go.
            perf_counter: measures them.
            on_idle: is called each time an eviction ends, so that the driver looks again.
            sleep: waits after a failure.
        """
        self._host = host
        self._remove = remove
        self._cancel_binding = cancel_binding
        self._metrics = metrics
        self._perf_counter = perf_counter
        self._on_idle = on_idle
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """Return the number of evictions under way."""
        return len(self._tasks)

    def start(self, eviction: Eviction) -> None:
        """Begin to remove the victims."""
        task = asyncio.get_running_loop().create_task(self.run(eviction))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, timeout_s: float) -> int:
        """Wait until the evictions under way have ended; returns how many had not after ``timeout_s``."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        return len(self._tasks)

    async def abandon(self) -> None:
        """Cancel the evictions under way; what was sent is not taken back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def run(self, eviction: Eviction) -> None:
        """Remove the victims; ``start`` does so as a task."""
        started_s = self._perf_counter()
        error: Exception | None = None
        was_gone = False
        try:
            was_gone = await self._remove_all(eviction)
        except Exception as failure:  # noqa: BLE001  supervisor: whatever it was, the preemptor must be let go
            error = failure
            _log.error("eviction failed", pod=eviction.preemptor.pod_key, node=eviction.node_name, err=repr(failure))
        # differs: upstream measures no time at all and calls every run a success (its deferred calls read too early).
        self._metrics.preemption_executed(_SUCCESS if error is None else _ERROR, self._perf_counter() - started_s)
        if error is not None:
            # differs: upstream tries the preemptor again at once, whatever its back-off. Where deletions are refused
            # (by missing rights, by a webhook) that would ask for the same one again, as fast as the server says no.
            await self._sleep(_PAUSE_S)
        eviction.on_end(error, was_gone)
        self._on_idle()

    async def _remove_all(self, eviction: Eviction) -> bool:
        *others, last = eviction.victims
        if others:
            await self._side_by_side(eviction, others)
        eviction.on_last()
        return await self._evict(eviction, last)

    async def _side_by_side(self, eviction: Eviction, victims: list[Pod]) -> None:
        free = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(victim: Pod) -> None:
            async with free:
                await self._evict(eviction, victim)

        # All are waited for even if one fails: a request that was begun should come to its end.
        ends = await asyncio.gather(*(one(victim) for victim in victims), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _evict(self, eviction: Eviction, victim: Pod) -> bool:
        """Remove one victim; returns whether it was gone already."""
        note = f"Preempted by pod {eviction.preemptor.uid} on node {eviction.node_name}"
        if self._was_stopped(eviction, victim):
            self._tell(eviction, victim, f"{note} (in kube-scheduler memory).")
            return False
        was_gone = await self._remove(victim, eviction.preemptor)
        if not was_gone:
            self._tell(eviction, victim, note)
        return was_gone

    def _was_stopped(self, eviction: Eviction, victim: Pod) -> bool:
        """Stop a victim that is still on its way to its node; False if there is nothing to stop (any more)."""
        if self._host.preempt_waiting(victim.pod_uid, eviction.plugin):
            return True
        return self._cancel_binding(victim.pod_uid, f"preempted by {eviction.plugin}")

    def _tell(self, eviction: Eviction, victim: Pod, note: str) -> None:
        preemptor = eviction.preemptor
        reporter = preemptor.spec.scheduler_name
        self._host.emit(
            EmitEvent(victim, reporter, "Normal", "Preempted", action="Preempting", note=note, related=preemptor)
        )
