"""DefaultBinder: writes the binding through the API server (spec §4.18)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar

from scheduler.api import BindPlugin, CycleState, EventRegistration, Handle, Pod, Status

__all__ = ["NAME", "DefaultBinder", "new"]

NAME = "DefaultBinder"


class DefaultBinder(BindPlugin):
    """Posts the binding and settles its outcome."""

    name: ClassVar[str] = NAME
    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def events(self) -> Sequence[EventRegistration]:
        return ()

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[Status | None]:
        del state
        return self._handle.bind(pod, node_name)


def new(args: object, handle: Handle) -> DefaultBinder:
    """Make the plugin; it has no arguments."""
    del args
    return DefaultBinder(handle)
