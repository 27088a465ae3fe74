"""PrioritySort: higher priority first, then who has waited longer (spec §4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from scheduler.api import EventRegistration, Handle, QueuedPodInfo, QueueSortPlugin

__all__ = ["NAME", "PrioritySort", "new"]

NAME = "PrioritySort"


class PrioritySort(QueueSortPlugin):
    """Orders the active queue by priority and time."""

    name: ClassVar[str] = NAME
    __slots__ = ()

    def events(self) -> Sequence[EventRegistration]:
        return ()

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, info: QueuedPodInfo) -> tuple[int, float]:
        return (-(info.pod.spec.priority or 0), info.timestamp_s)


def new(args: object, handle: Handle) -> PrioritySort:
    """Make the plugin; it has no arguments."""
    del args, handle
    return PrioritySort()
