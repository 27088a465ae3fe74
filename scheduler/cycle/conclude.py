"""Conclude: how a binding cycle, which runs beside the engine, changes the engine's state.

The binding cycle calls these functions on the scheduling thread, in this order:

    (pre-flight, wait on Permit) ─▶ permit_passed ─▶ (PreBind, Bind) ─▶ binding_succeeded ─▶ (PostBind) ─▶ binding_ended
               │                                           │
               └───────────────── any failure ─────────────┴──▶ binding_failed

Source: ``bindingCycle`` and ``handleBindingCycleError``; what the outcomes of a bind mean: ``state/outcome.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.api import PODS_TO_ACTIVATE, CycleState, Pod, Status
from scheduler.cycle.failure import handle_failure, newest_pending
from scheduler.cycle.metrics import SCHEDULED
from scheduler.failpoints import failpoint
from scheduler.framework.diagnosis import one_node_fit_error
from scheduler.state.cache.errors import CacheError
from scheduler.state.changes import ASSIGNED_POD_DELETE
from scheduler.state.outbox import EmitEvent, StartBinding
from scheduler.state.outcome import BindFailure, BindOutcome
from scheduler.telemetry.logging import get_logger

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = [
    "activate_requested",
    "binding_ended",
    "binding_failed",
    "binding_succeeded",
    "permit_passed",
    "rescue",
    "unreserve_and_forget",
]

_REFUSED_ERRORS = 8
"""Errors in a row that a refused bind counts as, which means the longest back-off."""

_DROPPED = frozenset({BindOutcome.LOST, BindOutcome.GONE})

_log = get_logger(__name__)


def permit_passed(engine: Scheduler, job: StartBinding) -> None:
    """Note that Permit let the pod go on: from here on a failure is an error that is retried, not a rejection."""
    job.is_waiting = False
    engine.queue.done(job.assumed.uid)


def binding_succeeded(engine: Scheduler, job: StartBinding) -> None:
    """Note that the pod is bound."""
    engine.cache.finish_binding(job.assumed, engine.clock.now())
    pod, profile = job.assumed, job.framework.profile_name
    note = f"Successfully assigned {pod.namespace}/{pod.name} to {job.node_name}"
    engine.outbox.push(EmitEvent(pod, profile, "Normal", "Scheduled", action="Binding", note=note))
    engine.metrics.attempt(SCHEDULED, profile, engine.perf_counter() - job.started_s)
    first_s = job.info.initial_attempt_timestamp_s
    engine.metrics.pod_scheduled(
        job.info.attempts,
        None if first_s is None else engine.clock.now() - first_s,
        after_flush=job.info.was_flushed_from_unschedulable,
    )
    _log.debug("pod bound", pod=pod.pod_key, node=job.node_name)


def binding_ended(engine: Scheduler, job: StartBinding) -> None:
    """Activate the pods that plugins of the binding cycle asked for."""
    job.framework.bindings -= 1
    activate_requested(engine, job.state)


def binding_failed(engine: Scheduler, job: StartBinding, status: Status) -> None:
    """Give back what the pod took, wake the pods that this may help, and send the pod back or drop it."""
    job.framework.bindings -= 1
    pod = job.assumed
    failpoint("binding.failed", pod)
    if job.is_waiting and status.is_rejected:
        status = _rejected_on_hold(engine, job, status)
    was_forgotten = unreserve_and_forget(engine, job)
    outcome = status.cause.outcome if isinstance(status.cause, BindFailure) else None
    if outcome in _DROPPED:
        _drop(engine, pod, outcome, freed=was_forgotten or outcome is BindOutcome.LOST)
        return
    if outcome is BindOutcome.REFUSED:
        job.info.consecutive_errors_count = max(job.info.consecutive_errors_count, _REFUSED_ERRORS)
    # parity: a rejected pod is always unschedulable by itself; if the event came first, it would be among the events
    # of its own flight and wake it in vain.
    if was_forgotten and not status.is_rejected:
        engine.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, pod, None)
    handle_failure(engine, job.framework, job.info, status, nominate="", started_s=job.started_s)
    if was_forgotten and status.is_rejected:
        engine.queue.move_all_to_active_or_backoff_queue(
            ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid
        )


def rescue(engine: Scheduler, job: StartBinding) -> None:
    """Complete what ``binding_failed`` left undone when a bug ended it: no room is kept, and the pod is tried again.

    For its supervisor; a pod that is neither in a queue nor on its way to a node would be forgotten for ever.
    """
    unreserve_and_forget(engine, job)
    engine.queue.done(job.assumed.uid)
    newest = newest_pending(engine, job.info.pod)
    if newest is not None:
        engine.queue.add(newest)


def _rejected_on_hold(engine: Scheduler, job: StartBinding, status: Status) -> Status:
    """Return the rejection by a Permit plugin as one that leaves the pod waiting for that plugin's events."""
    error = one_node_fit_error(job.assumed, engine.snapshot, job.node_name, status)
    error.diagnosis.unschedulable_plugins = {status.plugin}
    return error.status(status.code)


def _drop(engine: Scheduler, pod: Pod, outcome: BindOutcome | None, *, freed: bool) -> None:
    """Forget a pod that is bound elsewhere or gone: nothing to retry, nobody to tell."""
    label = outcome.value if outcome is not None else ""
    _log.info("binding dropped", pod=pod.pod_key, node=pod.node_name, outcome=label)
    engine.metrics.binding_dropped(label)
    engine.queue.done(pod.uid)
    if freed:
        engine.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, pod, None)


def unreserve_and_forget(engine: Scheduler, job: StartBinding) -> bool:
    """Undo Reserve and assume; returns whether the pod gave a place in the cache back."""
    job.framework.run_unreserve(job.state, job.assumed, job.node_name)
    failpoint("undo.unreserved", job.assumed)
    if not engine.cache.is_assumed(job.assumed.uid):
        return False  # the watch was faster: it has shown the pod on a node, or deleted
    try:
        return engine.cache.forget_pod(job.assumed)
    except CacheError as error:
        _log.warning("assumed pod could not be forgotten", pod=job.assumed.pod_key, error=str(error))
        return False


def activate_requested(engine: Scheduler, state: CycleState) -> None:
    """Move the pods that plugins put into ``PODS_TO_ACTIVATE`` to the active queue, once."""
    pods = state.get(PODS_TO_ACTIVATE)
    if pods:
        engine.queue.activate(dict(pods))
        pods.clear()
