"""Failure: what becomes of a pod whose attempt failed.

    count ─▶ note who said no ─▶ back to the queue ─▶ keep the nomination ─▶ tell the owner (event, condition)

The pod goes back as the watch knows it now, not as it was popped: it may have been deleted, bound or re-created under
its name meanwhile, and then it does not go back at all. Source: ``handleSchedulingFailure``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.api import Pod, QueuedPodInfo, Status
from scheduler.cycle.metrics import ERROR, UNSCHEDULABLE
from scheduler.failpoints import failpoint
from scheduler.framework.diagnosis import FitError, NoNodesError
from scheduler.framework.runtime import Framework
from scheduler.model.meta import Condition
from scheduler.model.pod import POD_SCHEDULED
from scheduler.state.outbox import EmitEvent, PatchPodStatus
from scheduler.telemetry.logging import get_logger

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = [
    "MAX_NOTE_BYTES",
    "POD_SCHEDULED",
    "REASON_ERROR",
    "REASON_UNSCHEDULABLE",
    "abandon",
    "cut_note",
    "handle_failure",
    "newest_pending",
    "tell_unserved",
]

REASON_UNSCHEDULABLE = "Unschedulable"
REASON_ERROR = "SchedulerError"

MAX_NOTE_BYTES = 1024
_CUT = " ..."

_log = get_logger(__name__)


def handle_failure(
    engine: Scheduler,
    framework: Framework,
    info: QueuedPodInfo,
    status: Status,
    *,
    nominate: str | None,
    started_s: float,
) -> None:
    """End a failed attempt.

    Args:
        engine: the engine.
        framework: the profile.
        info: the queue's record; is given back or dropped.
        status: why it failed; a rejection or an Error.
        nominate: node to nominate the pod to, "" to clear a nomination, None to leave it as it is.
        started_s: when the attempt began, on the engine's perf counter.
    """
    result = UNSCHEDULABLE if status.is_rejected else ERROR
    engine.metrics.attempt(result, framework.profile_name, engine.perf_counter() - started_s)
    _note_rejectors(info, status)
    failpoint("failure.requeue", info.pod)
    pod = newest_pending(engine, info.pod)
    if pod is None:
        engine.queue.done(info.pod.uid)
        return
    if framework.profile_name not in engine.profiles:
        engine.queue.done(pod.uid)
        tell_unserved(engine, pod)
        return
    info.pod = pod
    nominated = engine.queue.as_nominated(pod)
    engine.queue.add_unschedulable_if_not_present(info, engine.queue.scheduling_cycle)
    engine.queue.nominate(nominated, nominate)
    note = cut_note(status.message)
    engine.outbox.push(
        EmitEvent(pod, framework.profile_name, "Warning", "FailedScheduling", action="Scheduling", note=note)
    )
    # A nomination that the API server has yet to hear of must be taken back there, too.
    _tell_status(engine, pod if nominate else nominated, status, nominate)


def abandon(engine: Scheduler, error: Exception) -> None:
    """End the running attempt after a bug in the engine raised ``error``: the pod goes back and is tried again.

    For the supervisor of ``schedule_one``; without it the pod would stay in flight for ever.
    """
    info, engine.attempting = engine.attempting, None
    if info is None:
        return
    assumed = engine.cache.get_pod(info.pod.pod_uid)
    if assumed is not None and engine.cache.is_assumed(info.pod.uid):
        engine.cache.forget_pod(assumed)
    framework = engine.profiles.get(info.pod.spec.scheduler_name)
    if framework is None:
        engine.queue.done(info.pod.uid)
        return
    status = Status.error(f"internal error: {type(error).__name__}: {error}", error)
    handle_failure(engine, framework, info, status, nominate="", started_s=engine.perf_counter())


def tell_unserved(engine: Scheduler, pod: Pod) -> None:
    """Tell the owner of a pending pod that its profile is gone; the pod is nobody's until the profile comes back.

    The reason is not ``Unschedulable``: that would have an autoscaler add nodes for a pod that nobody schedules.
    """
    name = pod.spec.scheduler_name
    message = f'no profile named "{name}" is live: its SchedulerProfile was deleted or renamed'
    engine.outbox.push(EmitEvent(pod, name, "Warning", "FailedScheduling", action="Scheduling", note=cut_note(message)))
    _tell_status(engine, pod, Status.error(message), "")


def cut_note(message: str) -> str:
    """Return the message, cut to the 1,024 bytes that an event's note may have; what is no Unicode becomes ``?``."""
    raw = message.encode(errors="replace")
    if len(raw) <= MAX_NOTE_BYTES:
        return raw.decode()
    # differs: upstream cuts between bytes; a character cut in two would make the note invalid UTF-8.
    return raw[: MAX_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def _note_rejectors(info: QueuedPodInfo, status: Status) -> None:
    """Record who must change their mind before the pod is worth a retry; nobody after an error: it just backs off."""
    info.unschedulable_plugins = set()
    info.pending_plugins = set()
    info.gating_plugin = ""
    info.gating_plugin_events = ()
    cause = status.cause
    if isinstance(cause, FitError):
        info.unschedulable_plugins = set(cause.diagnosis.unschedulable_plugins)
        info.pending_plugins = set(cause.diagnosis.pending_plugins)
        _log.debug("pod fits nowhere", pod=info.pod.pod_key, reason=status.message)
    elif isinstance(cause, NoNodesError):
        _log.debug("pod has no node to run on", pod=info.pod.pod_key)
    else:
        _log.error("scheduling attempt failed", pod=info.pod.pod_key, plugin=status.plugin, error=status.message)


def newest_pending(engine: Scheduler, pod: Pod) -> Pod | None:
    """Return the pod as the watch knows it, or None if nothing is left to schedule."""
    newest = engine.pods.get(pod.pod_key)
    if newest is None:
        _log.debug("failed pod is gone", pod=pod.pod_key)
        return None
    if newest.node_name:
        # An answer may have been lost although the bind took effect.
        _log.info("failed pod has a node already", pod=pod.pod_key, node=newest.node_name)
        return None
    if newest.uid != pod.uid:
        _log.info("failed pod was re-created", pod=pod.pod_key, old_uid=pod.uid, new_uid=newest.uid)
        return None
    return newest


def _tell_status(engine: Scheduler, pod: Pod, status: Status, nominate: str | None) -> None:
    """Ask for the PodScheduled condition and the nomination to be written, where the pod does not say so already."""
    reason = REASON_UNSCHEDULABLE if status.is_rejected else REASON_ERROR
    message = status.message.encode(errors="replace").decode()  # a plugin's text may be no Unicode
    condition = Condition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
    )
    engine.outbox.push(PatchPodStatus(pod, condition, nominate))
