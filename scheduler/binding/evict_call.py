"""EvictCall: has one victim of a preemption removed by the API server.

Its owner is told first, by a condition on the pod, then it is deleted with its usual grace. Both requests name the UID,
so a successor under the same name is safe, and repeating them does no harm.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api import Clock, Pod
from scheduler.failpoints import async_failpoint
from scheduler.kube.transport import Transport
from scheduler.kube.writes import WRITE_TIMEOUT_S, WriteResult, delete_pod, patch_pod_status
from scheduler.model.meta import Condition

__all__ = ["DISRUPTION_TARGET", "PREEMPTION_BY_SCHEDULER", "EvictCall", "LeaseLostError", "disruption"]

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class LeaseLostError(Exception):
    """This process leads no more and must not write."""


def disruption(victim: Pod, preemptor: Pod) -> Condition:
    """Return the condition that tells a victim why it goes."""
    return Condition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=PREEMPTION_BY_SCHEDULER,
        message=f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        observed_generation=victim.metadata.generation,
    )


class EvictCall:
    """The API server's side of an eviction."""

    def __init__(self, transport: Transport, *, clock: Clock, may_write: Callable[[float], bool]) -> None:
        """Make the call; ``may_write`` is the lease's gate."""
        self._transport = transport
        self._clock = clock
        self._may_write = may_write

    async def __call__(self, victim: Pod, preemptor: Pod) -> bool:
        """Have ``victim`` removed; returns whether it was gone already.

        Raises:
            KubeError: the server refused, or did not answer.
            LeaseLostError: this process leads no more.
        """
        await async_failpoint("evict.before_patch", victim)
        self._check(victim)
        condition = disruption(victim, preemptor)
        patched = await patch_pod_status(
            self._transport, victim, condition, now_s=self._clock.now(), may_retry=self._is_leading
        )
        if patched is WriteResult.GONE:
            return True
        await async_failpoint("evict.before_delete", victim)
        self._check(victim)
        return await delete_pod(self._transport, victim) is WriteResult.GONE

    def _is_leading(self) -> bool:
        return self._may_write(WRITE_TIMEOUT_S)

    def _check(self, victim: Pod) -> None:
        if not self._is_leading():
            raise LeaseLostError(f"the lease is no longer held, so pod {victim.pod_key} was not evicted")
