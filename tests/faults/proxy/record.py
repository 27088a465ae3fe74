"""Record: what a proxy saw and did, kept in memory for the test and written as JSON lines for whoever reads a failed run."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from tests.faults.proxy.request import Request

__all__ = ["Decision", "Record", "Seen"]

_KEPT = 200_000


@dataclass(frozen=True, slots=True)
class Decision:
    """An action that was carried out.

    Attributes:
        at_s: CLOCK_BOOTTIME, which the scheduler's leases use too.
        rule: number of the rule, counted from 1.
        action: in words, with its arguments.
        request: over which it was decided.
        detail: what it was done to, such as the line of a watch.
    """

    at_s: float
    rule: int
    action: str
    request: Request
    detail: str = ""


@dataclass(slots=True)
class Seen:
    """A request that came in; the later fields are filled in while it goes on.

    Attributes:
        at_s: when it was there completely (CLOCK_BOOTTIME).
        is_forwarded: it has been handed to the server.
        status: what the client was answered; 0 for nothing.
        server_status: what the server answered; 0 for nothing.
        ended_s: when the answer was complete, or the connection lost.
        lines: lines of a watch that reached the client.
    """

    at_s: float
    request: Request
    body: bytes = b""
    is_forwarded: bool = False
    status: int = 0
    server_status: int = 0
    ended_s: float = 0.0
    lines: int = 0


@dataclass(slots=True)
class Record:
    """Decisions and requests, the newest 200,000 of each; the file has all."""

    file: Path | None = None
    decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=_KEPT))
    requests: deque[Seen] = field(default_factory=lambda: deque(maxlen=_KEPT))
    errors: list[str] = field(default_factory=list)
    """What went wrong in the proxy itself; a test that used one checks that it is empty."""
    _out: TextIO | None = None

    def decided(self, rule: int, action: str, request: Request, detail: str = "") -> None:
        """Note an action."""
        self.decisions.append(Decision(now_s(), rule, action, request, detail))
        self._write("decision", rule=rule, action=action, request=str(request), client=request.client, detail=detail)

    def came(self, request: Request, body: bytes) -> Seen:
        """Note a request."""
        seen = Seen(now_s(), request, body)
        self.requests.append(seen)
        self._write("request", request=str(request), client=request.client, agent=request.user_agent)
        return seen

    def ended(self, seen: Seen) -> None:
        """Note the end of a request."""
        seen.ended_s = now_s()
        self._write(
            "end",
            request=str(seen.request),
            client=seen.request.client,
            forwarded=seen.is_forwarded,
            status=seen.status,
            server_status=seen.server_status,
            lines=seen.lines,
            took_s=round(seen.ended_s - seen.at_s, 6),
        )

    def failed(self, what: str) -> None:
        """Note an error of the proxy itself."""
        self.errors.append(what)
        self._write("error", text=what)

    def close(self) -> None:
        if self._out is not None:
            self._out.close()
            self._out = None

    def _write(self, what: str, **fields: Any) -> None:
        if self.file is None:
            return
        if self._out is None:
            self._out = self.file.open("a", buffering=1)
        wall = datetime.now(UTC).isoformat(timespec="microseconds")
        self._out.write(json.dumps({"at_s": round(now_s(), 6), "time": wall, "what": what, **fields}) + "\n")


def now_s() -> float:
    """Return the time on the clock that also counts while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
