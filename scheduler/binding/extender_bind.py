"""ExtenderBinding: lets an extender with the bind verb bind a pod, and checks that it did.

    extender says yes ──▶ read the pod back ── our node ─▶ bound
                             │ unbound: a few times more, it may take effect a little later ─▶ Error
    extender fails ────▶ read the pod back ── our node ─▶ bound (it was bound, only the answer was lost)
                             │ unbound ─▶ Error, with what the extender said
                             │ no answer ─▶ read again, for as long as it takes: it may be bound
    either ──────────────▶ another node, no such pod ─▶ LOST, GONE

differs: upstream believes whatever the extender says, so a pod that an extender only pretends to have bound takes room
on its node for ever. Source: ``extendersBinding``.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence

from scheduler.api import ExtenderError, Pod, Status
from scheduler.binding.bind_call import LEASE_LOST, WriteGate
from scheduler.framework.binding import RunBlocking
from scheduler.framework.extender import Extender
from scheduler.kube.errors import KubeError
from scheduler.kube.writes import WRITE_TIMEOUT_S, Assignment
from scheduler.state.outbox import StartBinding
from scheduler.state.outcome import BindFailure, BindOutcome
from scheduler.telemetry.logging import get_logger

__all__ = ["ExtenderBinding", "ReadAssignment"]

_log = get_logger(__name__)

ReadAssignment = Callable[[Pod], Awaitable[Assignment | None]]
"""Reads where the pod of this name is now; None if there is none; raises KubeError."""

_READ_AFTER_SUCCESS_S = (0.0, 0.2, 1.0, 3.0)
_READ_AFTER_FAILURE_S = (0.0, 1.0)
_READ_ANEW_S = 2.0
"""Between readings while the API server does not answer."""


def _always(within_s: float) -> bool:
    del within_s
    return True


async def _at_once(pod: Pod) -> None:
    del pod


def _unknown(pod: Pod) -> Pod | None:
    del pod
    return None


class ExtenderBinding:
    """The binder's hook for extenders."""

    def __init__(
        self,
        extenders: Sequence[Extender],
        *,
        run_blocking: RunBlocking,
        read: ReadAssignment,
        may_write: WriteGate = _always,
        fall_silent: Callable[[Pod], Awaitable[None]] = _at_once,
        known: Callable[[Pod], Pod | None] = _unknown,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make the hook; extenders without the bind verb are left out, and none is asked without the lease.

        ``fall_silent`` comes back when nothing more is being said about a pod: binding has the last word. ``known`` is
        who has the pod's name as the watch has shown it: if that tells enough, the API server is not asked.
        """
        self._extenders = [extender for extender in extenders if extender.is_binder]
        self._run_blocking = run_blocking
        self._read = read
        self._may_write = may_write
        self._fall_silent = fall_silent
        self._known = known
        self._sleep = sleep
        self._unread: set[str] = set()

    async def __call__(self, job: StartBinding) -> tuple[bool, Status | None]:
        """Offer the pod to the extenders; returns whether one took it, and how it ended (None: it is bound)."""
        pod, node_name = job.assumed, job.node_name
        for extender in self._extenders:
            if not extender.is_interested(pod):
                continue
            await self._fall_silent(pod)
            if not self._may_write(WRITE_TIMEOUT_S):
                return True, _failed(BindOutcome.UNREACHABLE, LEASE_LOST)
            error = await self._run_blocking(functools.partial(_bind, extender, pod, node_name))
            if error is not None and extender.is_ignorable:
                _log.warning("ignorable extender failed", extender=extender.name, pod=pod.pod_key, error=str(error))
                continue
            return True, await self._settle(extender, pod, node_name, error)
        return False, None

    @property
    def unknown(self) -> int:
        """Return how many pods may be bound and could not be read back; they keep their room, others may be decided."""
        return len(self._unread)

    async def _settle(self, extender: Extender, pod: Pod, node_name: str, error: ExtenderError | None) -> Status | None:
        try:
            return await self._read_back(extender, pod, node_name, error)
        finally:
            self._unread.discard(pod.uid)

    async def _read_back(
        self, extender: Extender, pod: Pod, node_name: str, error: ExtenderError | None
    ) -> Status | None:
        was_read = False
        delays_s = iter(_READ_AFTER_SUCCESS_S if error is None else _READ_AFTER_FAILURE_S)
        while (delay_s := next(delays_s, None)) is not None or (error is not None and not was_read):
            await self._sleep(_READ_ANEW_S if delay_s is None else delay_s)
            try:
                assignment = self._shown(pod) or await self._read(pod)
            except KubeError as failure:
                _log.warning("pod not read back", pod=pod.pod_key, error=str(failure))
                self._unread.add(pod.uid)
                continue
            was_read = True
            if assignment is None or assignment.uid != pod.uid:
                return _failed(BindOutcome.GONE, "the pod is gone")
            if assignment.node_name == node_name:
                return None
            if assignment.node_name:
                return _failed(BindOutcome.LOST, f"the pod is bound to {assignment.node_name}")
        if error is not None:
            return Status.error(str(error), error)
        if not was_read:
            return None  # nobody can say otherwise; the watch will show it
        return Status.error(f"extender {extender.name} says that it bound the pod, but it is not bound to {node_name}")

    def _shown(self, pod: Pod) -> Assignment | None:
        """Return what the watch has shown, if that is evidence: a pod that it lacks, or shows unbound, may be late."""
        known = self._known(pod)
        if known is None or (known.uid == pod.uid and not known.node_name):
            return None
        return Assignment(known.uid, known.node_name)


def _bind(extender: Extender, pod: Pod, node_name: str) -> ExtenderError | None:
    try:
        extender.bind(pod, node_name)
    except ExtenderError as error:
        return error
    return None


def _failed(outcome: BindOutcome, message: str) -> Status:
    return Status.error(message, BindFailure(outcome, message))
