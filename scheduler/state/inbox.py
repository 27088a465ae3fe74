"""Inbox: the one way into the core.

Deltas come from the reflectors, commands (explain, a new profile, an outcome that a plugin's thread reports) from
anywhere; ``push`` and ``call`` are the only functions of the core that any thread may use. Order is arrival order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from scheduler.model.delta import Delta

__all__ = ["Command", "Inbox"]

Command = Callable[[], None]


class Inbox:
    """A queue of deltas and commands for the scheduling thread."""

    __slots__ = ("_items", "_on_push")

    def __init__(self, on_push: Callable[[], None]) -> None:
        """Make an empty inbox.

        Args:
            on_push: wakes the driver; is called on the pusher's thread, so it must be safe there.
        """
        self._items: deque[Delta | Command] = deque()  # append and popleft of a deque are atomic
        self._on_push = on_push

    def push(self, delta: Delta) -> None:
        """Hand in what a watch has seen."""
        self._items.append(delta)
        self._on_push()

    def call(self, command: Command) -> None:
        """Have ``command`` run on the scheduling thread, between two decisions."""
        self._items.append(command)
        self._on_push()

    def take(self) -> Delta | Command | None:
        """Return the oldest item, or None."""
        return self._items.popleft() if self._items else None

    def __len__(self) -> int:
        return len(self._items)
