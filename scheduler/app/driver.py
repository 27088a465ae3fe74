"""The driver: turns the pure core on the scheduling thread.

One turn applies what has arrived (bounded), decides for about two milliseconds, hands the decisions to the binding
side, and lets the loop read and write. When nothing is left to do it sleeps until something arrives or a timer of the
core is due. kube-scheduler's blocking ``Pop`` is this wait.

    inbox ──apply──▶ core ──decide──▶ outbox ──carry out──▶ binding tasks, status patches, events
      ▲                                                              │
      └──────────────────── reflectors, outcomes ◀── loop ───────────┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from scheduler.app.outside import Outside
from scheduler.failpoints import failpoint
from scheduler.model.delta import Delta
from scheduler.state.inbox import Inbox
from scheduler.state.outbox import Instruction

__all__ = ["Core", "Driver"]

_MAX_ITEMS_A_TURN = 512
_DECIDE_S = 0.002
_LONGEST_SLEEP_S = 30.0
_BLOCKED_SLEEP_S = 0.25
"""Longest sleep of a leader with ready pods that may not be decided: nobody tells when the lease has been renewed."""


class Core(Protocol):
    """What the driver turns."""

    def apply(self, delta: Delta) -> None:
        """Turn a watch event into a change of state."""

    def schedule_one(self) -> bool:
        """Take one pod through a scheduling cycle; False if none was ready."""

    def has_ready(self) -> bool:
        """Say whether a pod could be popped now."""

    def run_timers(self, now_s: float) -> None:
        """Do what has become due: flush back-offs, time out waiting pods."""

    def next_timer_s(self) -> float | None:
        """Return when ``run_timers`` has something to do, on the engine's clock."""

    def drain_outbox(self) -> list[Instruction]:
        """Return the instructions given since the last call."""


class Driver:
    """Alternates between the core and the loop."""

    def __init__(
        self,
        core: Core,
        inbox: Inbox,
        *,
        carry_out: Callable[[Instruction], None],
        may_decide: Callable[[], bool],
        is_leading: Callable[[], bool],
        outside: Outside,
        wake: asyncio.Event,
    ) -> None:
        """Make a driver.

        Args:
            core: the pure core.
            inbox: where deltas and commands arrive.
            carry_out: starts an instruction; must not block.
            may_decide: whether decisions are allowed: leading, synced, bindings in flight below the limit.
            is_leading: whether they may be soon; when it becomes so, ``wake`` is set.
            outside: the clock for timers, what measures the length of a turn, and what is done in idle moments.
            wake: is set whenever something has arrived or changed.
        """
        self._core = core
        self._inbox = inbox
        self._carry_out = carry_out
        self._may_decide = may_decide
        self._is_leading = is_leading
        self._clock = outside.clock
        self._perf_counter = outside.perf_counter
        self._when_idle = outside.when_idle
        self._wake = wake
        self._is_stopping = False
        self.last_turn_s = outside.perf_counter()
        """When the last turn ended, on the perf counter; the watchdog reads it from another thread."""
        self.is_in_turn = False
        """Whether a turn is running; one that runs for long is stuck in a plugin."""

    def stop(self) -> None:
        """End ``run`` after the present turn; what is in flight is not touched."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Turn the core until ``stop``."""
        while not self._is_stopping:
            self._wake.clear()
            self.is_in_turn = True
            more = self._turn()
            self.is_in_turn = False
            self.last_turn_s = self._perf_counter()
            if more:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    def _turn(self) -> bool:
        """Do one turn; say whether the next one has work already."""
        self._apply_some()
        self._core.run_timers(self._clock.now())
        self._carry_out_all()
        if self._may_decide():
            self._decide_some()
        return len(self._inbox) > 0 or (self._may_decide() and self._core.has_ready())

    def _apply_some(self) -> None:
        for _ in range(_MAX_ITEMS_A_TURN):
            item = self._inbox.take()
            if item is None:
                return
            failpoint("inbox.taken", item)
            if callable(item):
                item()
            else:
                self._core.apply(item)

    def _decide_some(self) -> None:
        until_s = self._perf_counter() + _DECIDE_S
        while self._core.schedule_one():
            # Each decision is handed over at once: its binding must not wait for the next one's thinking.
            self._carry_out_all()
            if self._perf_counter() >= until_s or not self._may_decide():
                break
        self._carry_out_all()

    def _carry_out_all(self) -> None:
        for instruction in self._core.drain_outbox():
            self._carry_out(instruction)

    async def _sleep(self) -> None:
        if self._wake.is_set():
            return
        self._when_idle()
        timer = asyncio.get_running_loop().call_later(self._sleep_s(), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _sleep_s(self) -> float:
        is_blocked = self._is_leading() and self._core.has_ready()
        longest_s = _BLOCKED_SLEEP_S if is_blocked else _LONGEST_SLEEP_S
        due_s = self._core.next_timer_s()
        if due_s is None:
            return longest_s
        return min(max(due_s - self._clock.now(), 0.001), longest_s)
