"""Binder: the binding cycle, from a decision to a settled outcome, beside the scheduling of other pods.

    pre-flight ─▶ (nominate) ─▶ wait on Permit ─▶ PreBind ─▶ Bind ─▶ PostBind
         │                           │               │         │
         └───────────────────────────┴───────────────┴─────────┴──▶ failed: undo and requeue

One task a pod. The binder decides nothing: every change of state is made by the core through ``BindingHost``, on the
same thread. Order of the steps: spec §1.3, upstream ``bindingCycle``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from scheduler.api import Clock, Code, Pod, Status
from scheduler.binding.node_check import NodeCheck
from scheduler.failpoints import async_failpoint, failpoint
from scheduler.state.outbox import StartBinding
from scheduler.telemetry.logging import get_logger

__all__ = ["Binder", "BindingHost", "ExtenderBind", "Nominate"]

_log = get_logger(__name__)

Nominate = Callable[[Pod, str], Awaitable[None]]
"""Writes ``status.nominatedNodeName`` of a pod whose binding will take time; a failure is the writer's to log."""

ExtenderBind = Callable[[StartBinding], Awaitable[tuple[bool, Status | None]]]
"""Offers the pod to the extenders that bind; returns whether one took it, and how it ended."""


class BindingHost(Protocol):
    """What the core does when a binding moves on."""

    def permit_passed(self, job: StartBinding) -> None:
        """The wait is over: from here on the pod's failures are errors, not rejections."""

    def binding_succeeded(self, job: StartBinding) -> None:
        """The pod is bound."""

    def binding_failed(self, job: StartBinding, status: Status) -> None:
        """The pod is not bound: undo the decision and requeue the pod, as far as the outcome allows."""

    def binding_ended(self, job: StartBinding) -> None:
        """PostBind has run; the last word about a bound pod."""


@dataclass(slots=True)
class _Preparation:
    """A pod in PreBind; ``objection`` says why it was cancelled."""

    task: asyncio.Future[Status | None]
    objection: str = ""


async def _no_extender(job: StartBinding) -> tuple[bool, Status | None]:
    del job
    return False, None


class Binder:
    """Runs binding cycles; keeps count of them for the driver and for the drain at the end."""

    def __init__(
        self,
        host: BindingHost,
        *,
        clock: Clock,
        nominate: Nominate,
        on_idle: Callable[[], None],
        extender_bind: ExtenderBind = _no_extender,
        node_check: NodeCheck | None = None,
    ) -> None:
        """Make a binder.

        Args:
            host: the core.
            clock: the engine's clock, for the length of waits.
            nominate: writes the nomination of a pod that will take its time.
            on_idle: is called each time a binding ends, so that the driver may decide again.
            extender_bind: binds through an extender where one is configured.
            node_check: is told when a decision begins to be carried out, and when that has ended.
        """
        self._host = host
        self._clock = clock
        self._nominate = nominate
        self._on_idle = on_idle
        self._extender_bind = extender_bind
        self._node_check = node_check
        self._tasks: set[asyncio.Task[None]] = set()
        self._preparing: dict[str, _Preparation] = {}
        self.on_hold = 0
        """Bindings that only wait on Permit; they use no connection."""

    @property
    def in_flight(self) -> int:
        """Return the number of binding cycles under way, those on hold included."""
        return len(self._tasks)

    def start(self, job: StartBinding) -> None:
        """Begin the binding cycle of a decision."""
        if self._node_check is not None:
            self._node_check.decided(job.assumed, job.node_name)
        task = asyncio.get_running_loop().create_task(self.run(job))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def cancel_preparation(self, uid: str, message: str) -> bool:
        """End the binding of a pod that is in PreBind with this message; False if it is not (any more)."""
        preparation = self._preparing.get(uid)
        if preparation is None or preparation.task.done():
            return False
        preparation.objection = preparation.objection or message
        preparation.task.cancel()
        return True

    async def drain(self, timeout_s: float) -> int:
        """Wait until the bindings under way have ended; returns how many had not after ``timeout_s``."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        return len(self._tasks)

    async def abandon(self) -> None:
        """Cancel the bindings under way; what they have sent is not taken back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("binding cycle broke", err=repr(task.exception()))
        self._on_idle()

    async def run(self, job: StartBinding) -> None:
        """Carry the decision out to its end; ``start`` does so as a task."""
        try:
            status = await self._carry_out(job)
        except Exception as error:  # noqa: BLE001  supervisor: a bug must not leave the pod in flight for ever
            status = Status.error(f"internal error: {type(error).__name__}: {error}", error)
        if self._node_check is not None:
            self._node_check.ended(job.assumed)
        # However the wait ended, nobody may find the pod on hold any more.
        job.framework.waiting.remove(job.assumed.uid)
        if status is not None:
            self._host.binding_failed(job, status)
            return
        failpoint("binding.succeeded", job.assumed)
        self._host.binding_succeeded(job)
        await async_failpoint("postbind.before", job.assumed)
        await job.framework.run_post_bind(job.state, job.assumed, job.node_name)
        self._host.binding_ended(job)

    async def _carry_out(self, job: StartBinding) -> Status | None:
        framework, state, pod, node_name = job.framework, job.state, job.assumed, job.node_name
        pre_flight = framework.run_pre_bind_pre_flight(state, pod, node_name)
        if pre_flight is not None and pre_flight.code is not Code.SKIP:
            return pre_flight
        if pre_flight is None or job.is_waiting:
            await async_failpoint("nominate.before", pod)
            await self._nominate(pod, node_name)
        if job.is_waiting and (status := await self._wait_on_permit(job)) is not None:
            return status
        self._host.permit_passed(job)
        if pre_flight is not None:
            framework.skip_pre_bind()
        elif (status := await self._prepare(job)) is not None:
            return status
        return await self._bind(job)

    async def _prepare(self, job: StartBinding) -> Status | None:
        """Run PreBind in a task of its own, which ``cancel_preparation`` can end."""
        await async_failpoint("prebind.before", job.assumed)
        uid = job.assumed.uid
        work = job.framework.run_pre_bind(job.state, job.assumed, job.node_name)
        preparation = self._preparing[uid] = _Preparation(asyncio.ensure_future(work))
        try:
            return await preparation.task
        except asyncio.CancelledError:
            if not preparation.objection:
                raise  # the binder itself is being stopped
            return Status.error(preparation.objection)
        finally:
            del self._preparing[uid]

    async def _wait_on_permit(self, job: StartBinding) -> Status | None:
        held = job.framework.waiting.get(job.assumed.uid)
        if held is None:
            return None
        ended = asyncio.Event()
        held.subscribe(ended.set)
        self.on_hold += 1
        try:
            await async_failpoint("permit.waiting", job.assumed)
            await ended.wait()
        finally:
            self.on_hold -= 1
        return job.framework.end_wait(job.assumed, self._clock.now())

    async def _bind(self, job: StartBinding) -> Status | None:
        await async_failpoint("bind.before", job.assumed)
        taken, status = await self._extender_bind(job)
        if taken:
            return status
        return await job.framework.run_bind(job.state, job.assumed, job.node_name)
