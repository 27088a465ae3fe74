"""Outcome of a bind: what each answer of the API server means for the pod, and what to do next.

A pure state machine without I/O; the binder sends, reads and waits as the steps say. Its reason for being is the
unknown outcome: a request that was sent and not answered may still take effect. Upstream frees the capacity at once
and may so book a node twice (k/k#106361); here it stays taken until the API server has said what is true.

             ┌── not sent (refused, pool, TLS), 401 ──▶ SEND again inside the deadline, else UNREACHABLE
    SEND ────┤── 2xx ─────────────────────────────────▶ BOUND
             ├── 409 ──▶ READ ── our node ────────────▶ BOUND (an earlier request took effect, k/k#96579)
             │            ├── another node ───────────▶ LOST
             │            ├── not bound, same UID ────▶ CONFLICT
             │            └── other UID, no such pod ─▶ GONE
             ├── 404 ─────────────────────────────────▶ GONE
             ├── 400, 403, 422, other 3xx and 4xx ────▶ REFUSED
             ├── 429, 503 with Retry-After ───────────▶ SEND again inside the deadline, else UNREACHABLE
             └── 408, 5xx, sent without an answer ────▶ UNKNOWN
    UNKNOWN ───▶ READ with back-off, for as long as it takes; the watch may answer first
             ├── our node, another node, other UID ───▶ BOUND, LOST, GONE
             ├── not bound, twice ────────────────────▶ UNREACHABLE
             └── no answer ───────────────────────────▶ READ again

BOUND, LOST and GONE are final. CONFLICT, REFUSED and UNREACHABLE mean UNDO: unreserve, forget, requeue.

"Not bound" settles an unknown outcome only if it is read twice, a second apart, and not before the server must have
given the request up (its ``timeout``): a request that hangs in the server could otherwise take effect after the read.
Nothing is ever sent again after an unknown outcome; a new attempt is a new decision.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from scheduler.api.handle import Random
from scheduler.kube.errors import ApiError, KubeError, TransportError
from scheduler.kube.writes import WRITE_TIMEOUT_S, Assignment
from scheduler.state.outcome import BindOutcome

__all__ = [
    "BIND_DEADLINE_S",
    "CONFIRM_AFTER_S",
    "BindAttempt",
    "BindState",
    "Read",
    "Send",
    "Settled",
    "Step",
]

BIND_DEADLINE_S = 4.0
"""No request is sent later than this after the first one."""

CONFIRM_AFTER_S = 1.0
"""Between the two readings that settle an unknown outcome as not bound."""

_FIRST_DELAY_S = 0.1
_MAX_SEND_DELAY_S = 0.5
_MAX_READ_DELAY_S = 5.0
_MAX_REFUSED_DELAY_S = 0.5


@dataclass(frozen=True, slots=True)
class Send:
    """Send the bind request after ``after_s`` seconds, and report to ``answered``."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Read:
    """Read the pod after ``after_s`` seconds, and report to ``read_back``."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Settled:
    """The end; ``message`` says what the server said, "" for BOUND by the answer itself."""

    outcome: BindOutcome
    message: str = ""


Step = Send | Read | Settled


class BindState(enum.Enum):
    """Where an attempt stands."""

    SENDING = "sending"
    CONFLICTED = "conflicted"
    UNKNOWN = "unknown"
    SETTLED = "settled"


class BindAttempt:
    """One decision on its way to the API server.

    Args:
        uid: of the pod.
        node_name: the node that was chosen.
        started_s: now; all times are of one clock that does not go backwards.
        random: for jitter.
        deadline_s: how long requests may be sent again.
        server_timeout_s: the ``timeout`` that the server was given with the request.
    """

    __slots__ = (
        "_deadline_s",
        "_delay_s",
        "_node_name",
        "_random",
        "_server_timeout_s",
        "_trusted_from_s",
        "_uid",
        "_unbound_since_s",
        "_why",
        "state",
    )

    def __init__(
        self,
        uid: str,
        node_name: str,
        *,
        started_s: float,
        random: Random,
        deadline_s: float = BIND_DEADLINE_S,
        server_timeout_s: float = WRITE_TIMEOUT_S,
    ) -> None:
        self.state = BindState.SENDING
        self._uid = uid
        self._node_name = node_name
        self._random = random
        self._deadline_s = started_s + deadline_s
        self._server_timeout_s = server_timeout_s
        self._delay_s = _FIRST_DELAY_S
        self._trusted_from_s = 0.0
        self._unbound_since_s: float | None = None
        self._why = ""

    @property
    def is_unknown(self) -> bool:
        """Tell whether the pod may be bound without our knowing."""
        return self.state is BindState.UNKNOWN

    def answered(self, error: KubeError | None, *, now_s: float) -> Step:
        """Take what became of a request: None for success, else the error.

        Args:
            error: what the bind call raised.
            now_s: now; the request may have been handed to the socket as late as this, as the call waits for its turn.
        """
        if error is None:
            return self._settle(BindOutcome.BOUND)
        self._why = str(error)
        if isinstance(error, ApiError):
            return self._refused(error, now_s)
        if isinstance(error, TransportError) and not error.sent:
            return self._send_again(0.0, now_s)
        return self._become_unknown(now_s)

    def read_back(self, reading: Assignment | KubeError | None, *, now_s: float) -> Step:
        """Take what a read of the pod gave: its assignment, None if it does not exist, or why it cannot be read."""
        if isinstance(reading, KubeError):
            return Read(self._delay_after_unread_s(reading))
        settled = self.seen(reading)
        return settled if settled is not None else self._read_unbound(now_s)

    def seen(self, assignment: Assignment | None) -> Settled | None:
        """Take what the watch shows, which may come before any answer; None if it settles nothing.

        Args:
            assignment: of the pod that has the name; None if it was deleted.
        """
        if assignment is None or assignment.uid != self._uid:
            return self._settle(BindOutcome.GONE, self._why)
        if not assignment.node_name:
            return None
        if assignment.node_name == self._node_name:
            return self._settle(BindOutcome.BOUND, self._why)
        return self._settle(BindOutcome.LOST, f"the pod is bound to {assignment.node_name}")

    def _refused(self, error: ApiError, now_s: float) -> Step:
        status = error.status
        if status == 409:
            self.state = BindState.CONFLICTED
            return Read(0.0)
        if status == 404:
            return self._settle(BindOutcome.GONE, self._why)
        if status == 401 or error.is_overload:
            return self._send_again(error.retry_after_s or 0.0, now_s)
        if status >= 500 or status == 408:
            return self._become_unknown(now_s)
        return self._settle(BindOutcome.REFUSED, self._why)

    def _send_again(self, after_s: float, now_s: float) -> Step:
        after_s = max(after_s, self._next_delay_s(_MAX_SEND_DELAY_S))
        if now_s + after_s >= self._deadline_s:
            return self._settle(BindOutcome.UNREACHABLE, self._why)
        return Send(after_s)

    def _become_unknown(self, now_s: float) -> Step:
        self.state = BindState.UNKNOWN
        self._trusted_from_s = now_s + self._server_timeout_s
        self._delay_s = _FIRST_DELAY_S
        return Read(self._next_delay_s(_MAX_READ_DELAY_S))

    def _delay_after_unread_s(self, error: KubeError) -> float:
        if isinstance(error, ApiError):
            return max(self._next_delay_s(_MAX_READ_DELAY_S), error.retry_after_s or 0.0)
        if isinstance(error, TransportError) and error.refused:
            return self._next_delay_s(_MAX_REFUSED_DELAY_S)  # the server restarts: it will be back soon
        return self._next_delay_s(_MAX_READ_DELAY_S)

    def _read_unbound(self, now_s: float) -> Step:
        if self.state is BindState.CONFLICTED:
            return self._settle(BindOutcome.CONFLICT, self._why)
        if self._unbound_since_s is None:
            self._unbound_since_s = now_s
        certain_s = max(self._unbound_since_s + CONFIRM_AFTER_S, self._trusted_from_s)
        if now_s >= certain_s:
            return self._settle(BindOutcome.UNREACHABLE, self._why)
        return Read(min(certain_s - now_s, CONFIRM_AFTER_S))

    def _settle(self, outcome: BindOutcome, message: str = "") -> Settled:
        self.state = BindState.SETTLED
        return Settled(outcome, message)

    def _next_delay_s(self, max_s: float) -> float:
        delay_s = min(self._delay_s, max_s)
        self._delay_s = delay_s * 2.0
        return delay_s * (0.5 + 0.5 * self._random.random())
