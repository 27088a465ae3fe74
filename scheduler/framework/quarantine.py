"""Quarantine: a third party's plugin that goes wrong on pod after pod is left alone for a while.

    in use ──faults on N different pods within the window──▶ out ──time is up──▶ on probation
      ▲                                                       ▲                   │      │
      └──────────────── a window without a fault ─────────────┼───────────────────┘      │
                                                              └── the next fault ────────┘

Faults are counted by pod, so that one poisoned pod that is tried again and again cannot take a plugin from all others.
"""

from __future__ import annotations

from scheduler.api import Clock
from scheduler.config.options import PluginFaults

__all__ = ["Quarantine"]


class Quarantine:
    """The record of one plugin of one profile. For the scheduling thread; ``shows_out`` for any."""

    __slots__ = ("_after", "_clock", "_faults", "_last", "_out_until_s", "_probation_until_s", "_settings")

    def __init__(self, settings: PluginFaults, clock: Clock) -> None:
        self._settings = settings
        self._after = settings.pods_before_quarantine
        self._clock = clock
        self._faults: dict[str, float] = {}
        self._out_until_s: float | None = None
        self._probation_until_s = 0.0
        self._last = ""

    @property
    def is_out(self) -> bool:
        """Say whether the plugin is to be left alone now; ends the time if it is up."""
        if self._out_until_s is None:
            return False
        now_s = self._clock.now()
        if now_s < self._out_until_s:
            return True
        self._out_until_s = None
        self._probation_until_s = now_s + self._settings.window_s
        return False

    def shows_out(self) -> bool:
        """Say whether the plugin is out, and change nothing."""
        until_s = self._out_until_s
        return until_s is not None and self._clock.now() < until_s

    def note(self, pod_uid: str, what: str) -> bool:
        """Book a fault; says whether it has put the plugin in quarantine."""
        self._last = what
        if not self._after or self._out_until_s is not None:
            return False
        now_s = self._clock.now()
        since_s = now_s - self._settings.window_s
        self._faults = {uid: at_s for uid, at_s in self._faults.items() if at_s > since_s}
        self._faults[pod_uid] = now_s
        if len(self._faults) < self._after and now_s >= self._probation_until_s:
            return False
        self._faults = {}
        self._out_until_s = now_s + self._settings.quarantine_s
        return True

    @property
    def reason(self) -> str:
        """Return why the plugin is out and for how long, for the pods' owners."""
        left_s = max((self._out_until_s or 0.0) - self._clock.now(), 0.0)
        return f"in quarantine for another {left_s:.0f} s after faults on several pods, the last one: {self._last}"
