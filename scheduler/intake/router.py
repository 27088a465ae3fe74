"""Router: the one entrance for deltas. It finds the family's handler and keeps the barrier.

An object that could not be decoded (``Rejected``) is logged once a version and counted; the owner of a rejected pod
is told by an event, because such a pod would otherwise stay pending in silence.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

from scheduler.intake.barrier import Barrier
from scheduler.model.delta import Added, Changed, Delta, Rejected, Removed, Synced, Unavailable
from scheduler.model.meta import KubeObject, ObjectMeta
from scheduler.model.pod import Pod
from scheduler.state.outbox import EmitEvent, Outbox
from scheduler.telemetry.logging import get_logger

__all__ = ["Handler", "Intake"]

_log = get_logger(__name__)

_REMEMBERED_REJECTIONS = 4096
_NOTE_BYTES = 1024


class Handler(Protocol):
    """Applies the deltas of one kind."""

    def added(self, obj: Any, /) -> None:
        """Take in a new object."""

    def changed(self, old: Any, new: Any, /) -> None:
        """Take in a new version."""

    def removed(self, obj: Any, /, *, is_stale: bool) -> None:
        """Take in a removal."""


class Intake:
    """Applies deltas in the order in which they come."""

    def __init__(
        self,
        *,
        handlers: Mapping[type[KubeObject], Handler],
        barrier: Barrier,
        outbox: Outbox,
        profiles: Container[str],
        on_rejected: Callable[[str], None] = lambda kind: None,  # noqa: ARG005  the reflector counts them too
    ) -> None:
        """Make the router.

        Args:
            handlers: one for each watched kind.
            barrier: is told which kinds have been delivered.
            outbox: takes the events about rejected pods.
            profiles: schedulerNames that are ours; other schedulers tell their own pods.
            on_rejected: is called with the kind's name for each newly rejected version.
        """
        self._handlers = handlers
        self._barrier = barrier
        self._outbox = outbox
        self._profiles = profiles
        self._on_rejected = on_rejected
        self._rejections: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    @property
    def is_synced(self) -> bool:
        """Say whether every kind has been delivered once."""
        return self._barrier.is_open

    def apply(self, delta: Delta) -> None:
        """Turn one delta into changes of state.

        Raises:
            KeyError: no handler was given for the kind, which is an error of the composition root.
        """
        match delta:
            case Added(obj):
                self._handlers[type(obj)].added(obj)
            case Changed(old, obj):
                self._handlers[type(obj)].changed(old, obj)
            case Removed(obj, is_stale):
                self._handlers[type(obj)].removed(obj, is_stale=is_stale)
            case Synced(kind):
                self._barrier.synced(kind)
            case Unavailable(kind, reason):
                self._note_unavailable(kind, reason)
            case Rejected():
                self._note_rejected(delta)

    def _note_unavailable(self, kind: type[KubeObject], reason: str) -> None:
        if self._barrier.unavailable.get(kind) != reason:
            what = "nothing is decided without it" if self._barrier.needs(kind) else "plugins that need it work without"
            _log.warning(f"kind cannot be read; {what}", kind=kind.__name__, err=reason)
        self._barrier.unreadable(kind, reason)

    def _note_rejected(self, rejected: Rejected) -> None:
        kind = rejected.kind.__name__
        identity = (kind, f"{rejected.namespace}/{rejected.name}/{rejected.uid}", rejected.resource_version)
        if identity in self._rejections:
            return
        self._rejections[identity] = None
        if len(self._rejections) > _REMEMBERED_REJECTIONS:
            self._rejections.popitem(last=False)
        self._on_rejected(kind)
        name = f"{rejected.namespace}/{rejected.name}".lstrip("/")
        _log.warning("object rejected", kind=kind, object=name, err=rejected.reason)
        is_pending_and_ours = rejected.scheduler_name in self._profiles and not rejected.node_name
        if rejected.kind is Pod and is_pending_and_ours and rejected.name and rejected.namespace:
            self._outbox.push(_rejection_event(rejected))


def _rejection_event(rejected: Rejected) -> EmitEvent:
    meta = ObjectMeta(name=rejected.name, namespace=rejected.namespace, uid=rejected.uid)
    note = f"the pod cannot be scheduled because it cannot be understood: {rejected.reason}"
    return EmitEvent(
        regarding=Pod(metadata=meta),
        reporter=rejected.scheduler_name,
        kind="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=note.encode()[:_NOTE_BYTES].decode(errors="ignore"),
    )
