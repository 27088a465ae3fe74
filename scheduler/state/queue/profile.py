"""QueueProfile: the part of a profile that the queue needs; the framework makes it from the profile's plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.api.events import EventRegistration
from scheduler.api.status import Status
from scheduler.model.pod import Pod

__all__ = ["PreEnqueue", "QueueProfile"]


class PreEnqueue(Protocol):
    """What the queue asks of a PreEnqueue plugin; plugins themselves and guarded wrappers fit."""

    @property
    def name(self) -> str:
        """Return the plugin's name."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return None to let the pod in; any other status keeps it out."""


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """One profile as the queue sees it.

    Attributes:
        pre_enqueue: the PreEnqueue plugins, in the order in which they run.
        registrations: which plugin wants to hear of which events. A plugin may appear several times; a plugin that
            names no events has been given all of them by the framework, as has the pseudo plugin "Extender".
    """

    pre_enqueue: Sequence[PreEnqueue] = ()
    registrations: Sequence[tuple[str, EventRegistration]] = ()
