"""BindCall: posts a binding and does not come back before its outcome is known.

The rules are those of ``binding.outcome``; here is only the sending, reading and waiting. While an outcome is unknown
the pod stays assumed, so its room cannot be given away twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from scheduler.api import Clock, Lister, Pod, Random, Status
from scheduler.binding.outcome import BindAttempt, Read, Send, Settled, Step
from scheduler.binding.throttle import Throttle
from scheduler.failpoints import async_failpoint
from scheduler.kube.errors import ApiError, KubeError, TransportError
from scheduler.kube.transport import Transport
from scheduler.kube.writes import WRITE_TIMEOUT_S, Assignment, bind, read_assignment
from scheduler.state.outcome import BindFailure, BindOutcome
from scheduler.telemetry.logging import get_logger

__all__ = ["LEASE_LOST", "BindCall", "WriteGate"]

LEASE_LOST = "the lease is no longer held, so the binding was not sent"

_log = get_logger(__name__)

_UNAUTHORIZED = 401
_UNKNOWN_TO_SERVER_S = 0.25
"""A server that does not know us is asked again after this, by one bind."""

WriteGate = Callable[[float], bool]
"""``may_write(deadline_s)``: whether a write that may take that long may be handed to the socket now."""


def _no_objection(pod: Pod, node_name: str) -> str | None:
    del pod, node_name
    return None


class BindCall:
    """The API server's side of the Bind extension point."""

    def __init__(
        self,
        transport: Transport,
        *,
        pods: Lister[Pod],
        clock: Clock,
        random: Random,
        may_write: WriteGate,
        on_outcome: Callable[[BindOutcome, bool], None],
        objection: Callable[[Pod, str], str | None] = _no_objection,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make the call.

        Args:
            transport: to the API server.
            pods: what the watch has shown; it may settle an unknown outcome before a read does.
            clock: for deadlines.
            random: for jitter.
            may_write: the lease's gate; a bind that may no longer be sent is UNREACHABLE.
            on_outcome: is told each outcome and whether it had been unknown, for metrics.
            objection: says why a pod must not be bound to its node any more. The API server does not look at the node.
            sleep: waits.
        """
        self._transport = transport
        self._pods = pods
        self._clock = clock
        self._random = random
        self._may_write = may_write
        self._on_outcome = on_outcome
        self._objection = objection
        self._sleep = sleep
        self.unknown = 0
        """Binds whose outcome is open at the moment."""
        self.throttle = Throttle()
        """Whether the server has asked for patience."""

    async def __call__(self, pod: Pod, node_name: str) -> Status | None:
        """Bind ``pod``; returns None once it is bound, else an Error whose cause is a ``BindFailure``."""
        attempt = BindAttempt(pod.uid, node_name, started_s=self._clock.now(), random=self._random)
        step = await self._send(attempt, pod, node_name)  # nearly always the whole story
        was_unknown = False
        if not isinstance(step, Settled):
            step, was_unknown = await self._settle(step, attempt, pod, node_name)
        self._on_outcome(step.outcome, was_unknown)
        if step.outcome is BindOutcome.BOUND:
            return None
        message = step.message or f"binding {pod.pod_key} to {node_name} ended as {step.outcome.value}"
        return Status.error(message, BindFailure(step.outcome, message))

    async def _settle(self, step: Send | Read, attempt: BindAttempt, pod: Pod, node_name: str) -> tuple[Settled, bool]:
        """Send again or read back until the outcome is known; tells also whether it had been unknown."""
        was_unknown = False
        following: Step = step
        try:
            while not isinstance(following, Settled):
                if attempt.is_unknown and not was_unknown:
                    was_unknown = True
                    self.unknown += 1
                    _log.warning("bind outcome unknown; reading the pod back", pod=pod.pod_key, node=node_name)
                following = await self._take(following, attempt, pod, node_name)
        finally:
            self.unknown -= was_unknown
        return following, was_unknown

    async def _take(self, step: Send | Read, attempt: BindAttempt, pod: Pod, node_name: str) -> Step:
        if step.after_s > 0:
            await self._sleep(step.after_s)
        if isinstance(step, Send):
            return await self._send(attempt, pod, node_name)
        return await self._read(attempt, pod)

    async def _send(self, attempt: BindAttempt, pod: Pod, node_name: str) -> Step:
        await async_failpoint("bind.before_send", pod)
        if not self._may_write(WRITE_TIMEOUT_S):
            return Settled(BindOutcome.UNREACHABLE, LEASE_LOST)
        if (objection := self._objection(pod, node_name)) is not None:
            return Settled(BindOutcome.UNREACHABLE, objection)
        error: KubeError | None = None
        try:
            await bind(self._transport, pod, node_name)
            await async_failpoint("bind.answered", pod)
        except KubeError as failure:
            error = failure
        except Exception as bug:  # noqa: BLE001  supervisor: after a bug of ours the pod may be bound all the same
            error = _broken(pod, bug)
        now_s = self._clock.now()
        self._note_load(error, now_s)
        return attempt.answered(error, now_s=now_s)

    def _note_load(self, error: KubeError | None, now_s: float) -> None:
        if isinstance(error, ApiError) and error.is_overload:
            self.throttle.refused(error.retry_after_s or 0.0, now_s)
        elif isinstance(error, ApiError) and error.status == _UNAUTHORIZED:
            self.throttle.refused(_UNKNOWN_TO_SERVER_S, now_s)  # the others' answers would be the same
        elif error is None or isinstance(error, ApiError):
            self.throttle.answered()

    async def _read(self, attempt: BindAttempt, pod: Pod) -> Step:
        reading: Assignment | KubeError | None
        try:
            await async_failpoint("bind.before_read", pod)
            if (settled := self._seen_by_watch(attempt, pod)) is not None:
                return settled
            reading = await read_assignment(self._transport, pod.namespace, pod.name)
        except KubeError as failure:
            reading = failure
            # Until it can be read, its place stays taken: whoever looks for the place must find out why.
            _log.warning("a pod with an unknown bind outcome was not read", pod=pod.pod_key, err=str(failure))
        except Exception as bug:  # noqa: BLE001  supervisor: the room stays taken until the truth is known
            reading = _broken(pod, bug)
        return attempt.read_back(reading, now_s=self._clock.now())

    def _seen_by_watch(self, attempt: BindAttempt, pod: Pod) -> Settled | None:
        known = self._pods.get(pod.pod_key)
        # A pod that the store lacks may just not have been delivered; only what it shows is evidence.
        return attempt.seen(Assignment(known.uid, known.node_name)) if known is not None else None


def _broken(pod: Pod, bug: Exception) -> TransportError:
    """Return what a bug of ours amounts to: a request that was perhaps sent, and whose answer is not known."""
    _log.error("bind call broke", pod=pod.pod_key, err=repr(bug))
    return TransportError(f"internal error: {bug!r}", sent=True)
