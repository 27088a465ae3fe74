"""The failpoints of a process under test: they look for orders in a directory, and carry them out.

The directory is the whole interface, so it works across processes and their restarts::

    NAME.order      what to do at failpoint NAME, as JSON (see `Order`); absent: nothing. Taking it away lets go whoever
                    is paused there
    NAME.reached    one line of JSON for each time that the order was met
    NAME.spent      the order, once it has killed: the process that comes next is spared

A thread that pauses stands still with everything that it does; a task that pauses lets others go on.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_POLL_S = 0.005
_SHOWN = 200


class FailpointError(Exception):
    """What the order `raise` raises."""


@dataclass(slots=True)
class Order:
    """What to do at a failpoint.

    Attributes:
        action: ``pause`` (until the order is taken away), ``raise``, ``kill`` (as by kill -9), ``exit`` (with code 70),
            ``note`` (only that it was reached).
        match: a regular expression that what the moment is about must contain; "" for anything.
        skip: so many times nothing happens before.
        times: so many times it happens; 0 for ever.
        stamp: of the order's file; a new file is a new order.
    """

    action: str
    match: str = ""
    skip: int = 0
    times: int = 0
    stamp: tuple[int, int] = (0, 0)
    met: int = 0


@dataclass(slots=True)
class Armed:
    """All failpoints of this process.

    Attributes:
        directory: where orders are.
    """

    directory: Path
    _orders: dict[str, Order] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def failpoint(self, name: str, about: object = None) -> None:
        """Stand for `scheduler.failpoints.failpoint`."""
        order = self._due(name, about)
        if order is not None and self._carried_out(name, order):
            while self._is_standing(name, order):
                time.sleep(_POLL_S)

    async def async_failpoint(self, name: str, about: object = None) -> None:
        """Stand for `scheduler.failpoints.async_failpoint`."""
        order = self._due(name, about)
        if order is not None and self._carried_out(name, order):
            while self._is_standing(name, order):  # noqa: ASYNC110  the test speaks through files
                await asyncio.sleep(_POLL_S)

    def _due(self, name: str, about: object) -> Order | None:
        """Return the order that is met now, if there is one."""
        order = self._current(name)
        if order is None:
            return None
        text = shown(about)
        if order.match and re.search(order.match, text) is None:
            return None
        with self._lock:
            order.met += 1
            number = order.met - order.skip
            if number < 1 or (order.times and number > order.times):
                return None
            if order.action in ("kill", "exit") and not self._spend(name):
                return None
            self._note(name, text)
        return order

    def _carried_out(self, name: str, order: Order) -> bool:
        """Do what is done at once; returns whether to pause."""
        if order.action == "raise":
            raise FailpointError(name)
        if order.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # a signal to oneself may take a moment to arrive
        if order.action == "exit":
            os._exit(70)
        return order.action == "pause"

    def _current(self, name: str) -> Order | None:
        stamp = self._stamp(name)
        known = self._orders.get(name)
        if stamp is None:
            return None
        if known is None or known.stamp != stamp:
            try:
                fields: dict[str, Any] = json.loads((self.directory / f"{name}.order").read_text())
            except FileNotFoundError:
                return None
            known = self._orders[name] = Order(**fields, stamp=stamp)
        return known

    def _stamp(self, name: str) -> tuple[int, int] | None:
        try:
            found = (self.directory / f"{name}.order").stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _is_standing(self, name: str, order: Order) -> bool:
        return self._stamp(name) == order.stamp

    def _spend(self, name: str) -> bool:
        """Take a deadly order out of force; False if another process was faster."""
        try:
            (self.directory / f"{name}.order").rename(self.directory / f"{name}.spent")
        except FileNotFoundError:
            return False
        return True

    def _note(self, name: str, text: str) -> None:
        line = json.dumps({"pid": os.getpid(), "about": text, "at_s": time.time()})
        with (self.directory / f"{name}.reached").open("a") as file:
            file.write(line + "\n")


def shown(about: object) -> str:
    """Return what a moment is about as text: a pod as namespace/name, a request as its first line."""
    if isinstance(about, bytes):
        return about.partition(b"\r\n")[0].decode(errors="replace")[:_SHOWN]
    key = getattr(about, "pod_key", None)
    return str(key) if key is not None else repr(about)[:_SHOWN]
