"""Threads for what plugins do now and then; they are daemons, so that one that hangs is given up at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["in_thread"]


def in_thread(name: str, function: Callable[[], None], every_s: float) -> Callable[[], None]:
    """Call ``function`` on a thread of its own, now and ``every_s`` seconds after each return, until asked to stop.

    Returns:
        What asks; it does not wait.
    """
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            function()
            stop.wait(every_s)

    threading.Thread(target=repeat, name=f"background-{name}", daemon=True).start()
    return stop.set
