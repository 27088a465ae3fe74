"""Health checks by name, and the texts of /healthz, /livez and /readyz (parity: apiserver/pkg/server/healthz).

A check returns None when all is well, else the reason. Reasons are for the log and for the authorised path of the
single check; the public answer says only ``reason withheld``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from scheduler.telemetry.logging import get_logger

__all__ = ["LEADER_ELECTION", "PING", "SHUTDOWN", "SYNC", "WATCHDOG", "HealthAnswer", "HealthChecks"]

PING: Final = "ping"
LEADER_ELECTION: Final = "leaderElection"
SHUTDOWN: Final = "shutdown"
SYNC: Final = "sched-handler-sync"
WATCHDOG: Final = "watchdog"

Check = Callable[[], str | None]
Observer = Callable[[str, str, bool], None]
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """What to send."""

    status: int
    text: str


def _ignore(name: str, kind: str, is_healthy: bool) -> None:
    del name, kind, is_healthy


class HealthChecks:
    """The checks behind one path.

    Args:
        kind: the path without its slash.
        observe: told name, kind and result of every check that ran.
    """

    def __init__(self, kind: Literal["healthz", "livez", "readyz"], observe: Observer = _ignore) -> None:
        self.kind = kind
        self._observe = observe
        self._checks: dict[str, Check] = {}
        self._failing: set[str] = set()
        self._notes: list[Callable[[], Sequence[str]]] = []

    def add(self, name: str, check: Check) -> None:
        """Add a check; checks run in the order in which they were added.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._checks:
            msg = f"{self.kind} has a check {name} already"
            raise ValueError(msg)
        self._checks[name] = check

    def note(self, lines: Callable[[], Sequence[str]]) -> None:
        """Show these lines with ``?verbose``: facts that are worth seeing and fail nothing."""
        self._notes.append(lines)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the checks; ``ping`` if there are none (parity)."""
        return tuple(self._checks) or (PING,)

    def answer(self, *, is_verbose: bool = False, excluded: Collection[str] = ()) -> HealthAnswer:
        """Run all checks but the excluded ones."""
        lines: list[str] = []
        failures = False
        for name in self.names:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            reason = self._run(name)
            if reason is None:
                lines.append(f"[+]{name} ok")
            else:
                failures = True
                lines.append(f"[-]{name} failed: reason withheld")
        lines += self._complaints(excluded)
        if failures:
            lines += self._noted() if is_verbose else []
            return HealthAnswer(500, "\n".join([*lines, f"{self.kind} check failed", ""]))
        if not is_verbose:
            return HealthAnswer(200, "ok")
        return HealthAnswer(200, "\n".join([*lines, *self._noted(), f"{self.kind} check passed", ""]))

    def answer_one(self, name: str) -> HealthAnswer:
        """Run one check; this answer names the reason."""
        reason = self._run(name)
        return HealthAnswer(200, "ok") if reason is None else HealthAnswer(500, f"internal server error: {reason}\n")

    def _run(self, name: str) -> str | None:
        check = self._checks.get(name)
        reason = check() if check is not None else None
        self._observe(name, self.kind, reason is None)
        if (reason is None) == (name in self._failing):
            self._note_change(name, reason)
        return reason

    def _note_change(self, name: str, reason: str | None) -> None:
        """Log a check that fails or no longer does: once, however often and by whomever it is asked."""
        if reason is None:
            self._failing.discard(name)
            _log.info("health check passed", path=self.kind, check=name)
        else:
            self._failing.add(name)
            _log.info("health check failed", path=self.kind, check=name, reason=reason)

    def _complaints(self, excluded: Collection[str]) -> list[str]:
        unknown = sorted(set(excluded) - set(self.names))
        if not unknown:
            return []
        quoted = ",".join(f'"{name}"' for name in unknown)
        return [f"warn: some health checks cannot be excluded: no matches for {quoted}"]

    def _noted(self) -> list[str]:
        return [line for lines in self._notes for line in lines()]
