"""The leader elector: drives ``election`` against the API server, and is the gate that every write passes.

Numbers and errors are client-go's: lease 15 s, renew deadline 10 s, retry 2 s, jitter 1.2 between tries to acquire
while nobody is seen to lead.

States of ``run``::

    acquiring ──won──▶ leading ──renewed──▶ leading
        │stop             ├─ not renewed within the deadline, or another holder seen ─▶ lost    (exit 1)
        ▼                 └─ stop ─▶ gate closed ─▶ lease released ─▶ stopped                    (exit 0)
     stopped

Invariant: a write is handed to its connection only while ``may_write(its deadline)``; with deadlines ≤ 4 s an honest
old leader's writes have ended before a new leader may start (15 s - 1 s margin, from the moment a renewal was sent).

Threads: everything runs on the loop of the transport, except ``may_write`` and ``is_leader``, which any thread may ask.

# differs: a leader that sees another holder stops at once; client-go goes on trying until the renew deadline.
# differs: while another one leads, the lease is looked at every 0.25 to 0.5 retry periods, so that a planned hand-over
#     takes about a second; client-go looks after 1 to 2.2 periods.
# differs: a lost lease is left to run out, so that our last writes have ended before it does; client-go frees it.
# differs: a conflict while releasing is tried again; client-go gives up.
# differs: a container that is started anew takes the lease of the one before at once, if it is told the pod's UID.
# differs: what a holder did not release stays its own until it has run out, whatever is done to the lease by hand.
"""

from __future__ import annotations

import asyncio
import enum
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec

from scheduler.api.handle import Random
from scheduler.failpoints import async_failpoint
from scheduler.kube.boottime import boottime_s
from scheduler.kube.election import Answer, Call, Election, Verb
from scheduler.kube.errors import ApiError, KubeError
from scheduler.kube.transport import Transport, raise_for_status
from scheduler.telemetry.logging import get_logger

__all__ = [
    "BECAME_LEADER",
    "HEALTH_TOLERANCE_S",
    "JITTER_FACTOR",
    "STOPPED_LEADING",
    "Ended",
    "LeaderCallbacks",
    "LeaderElector",
    "LeaderMetrics",
    "LeaseConfig",
    "LeaseConfigError",
    "NullLeaderMetrics",
    "OpenGate",
    "WriteGate",
    "identity_of_pod",
    "make_identity",
]

JITTER_FACTOR: Final = 1.2
HEALTH_TOLERANCE_S: Final = 20.0
BECAME_LEADER: Final = "became leader"
STOPPED_LEADING: Final = "stopped leading"

_RELEASE_TRIES = 3
_STANDBY_FACTOR = 0.25
_log = get_logger(__name__)


def make_identity(hostname: str, pod_uid: str = "") -> str:
    """Return ``HOSTNAME_UUID``, unique for each start of the process; ``HOSTNAME_PODUID_UUID`` if the pod is known."""
    return f"{identity_of_pod(hostname, pod_uid) or f'{hostname}_'}{uuid.uuid4()}"


def identity_of_pod(hostname: str, pod_uid: str) -> str:
    """Return how all identities begin that the containers of one pod take one after another; "" without its UID.

    Before a container of a pod is started anew, its kubelet has ended the one before; so who holds the lease under
    such an identity, and is not we, writes no more.
    """
    return f"{hostname}_{pod_uid}_" if pod_uid else ""


class LeaseConfigError(ValueError):
    """The election's settings contradict one another; texts are client-go's."""


@dataclass(frozen=True, slots=True)
class LeaseConfig:
    """Settings of one election; the defaults are kube-scheduler's."""

    identity: str
    predecessors: str = ""
    """How the identities begin of processes that have ended when we begin (``identity_of_pod``); "": nobody knows."""
    name: str = "kube-scheduler"
    namespace: str = "kube-system"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    release_on_stop: bool = True

    def __post_init__(self) -> None:
        """Refuse settings under which two leaders could overlap.

        Raises:
            LeaseConfigError: with client-go's text.
        """
        if self.lease_duration_s <= self.renew_deadline_s:
            raise LeaseConfigError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline_s <= JITTER_FACTOR * self.retry_period_s:
            raise LeaseConfigError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.lease_duration_s <= 0:
            raise LeaseConfigError("leaseDuration must be greater than zero")
        if self.renew_deadline_s <= 0:
            raise LeaseConfigError("renewDeadline must be greater than zero")
        if self.retry_period_s <= 0:
            raise LeaseConfigError("retryPeriod must be greater than zero")
        if not self.identity:
            raise LeaseConfigError("Lock identity is empty")

    @property
    def call_timeout_s(self) -> float:
        """Return the limit of one call, so that a hung one cannot cost the leadership (parity: max(1 s, half))."""
        return max(1.0, self.renew_deadline_s / 2)


def _ignore(*_args: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class LeaderCallbacks:
    """Called on the elector's loop; they must not block.

    Attributes:
        on_started_leading: once, after the lease was won.
        on_stopped_leading: always when ``run`` ends, even if it never led.
        on_new_leader: for each change of leader seen, our own included.
        record_event: text for an event on the lease: ``IDENTITY became leader``.
    """

    on_started_leading: Callable[[], None]
    on_stopped_leading: Callable[[], None]
    on_new_leader: Callable[[str], None] = _ignore
    record_event: Callable[[str], None] = _ignore


class LeaderMetrics(Protocol):
    """What the elector measures."""

    def leader_slowpath(self, name: str) -> None: ...
    def leader_renewed(self, result: str, duration_s: float) -> None: ...
    def leader_changed(self) -> None: ...


class NullLeaderMetrics:
    """Measures nothing."""

    def leader_slowpath(self, name: str) -> None: ...
    def leader_renewed(self, result: str, duration_s: float) -> None: ...
    def leader_changed(self) -> None: ...


class WriteGate(Protocol):
    """Says whether this process may write now."""

    def may_write(self, deadline_s: float) -> bool:
        """Tell whether a write that ends within ``deadline_s`` from now is allowed."""


class OpenGate:
    """The gate of a process without leader election: always open."""

    def may_write(self, deadline_s: float) -> bool:
        del deadline_s
        return True


class Ended(enum.Enum):
    """Why ``run`` returned."""

    STOPPED = "stopped"
    LOST = "lost"


def _wall_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _pause(duration_s: float, stop: asyncio.Event) -> None:
    """Sleep, or return early when ``stop`` is set."""
    try:
        async with asyncio.timeout(duration_s):
            await stop.wait()
    except TimeoutError:
        return


class LeaderElector:
    """One candidate for one lease. Create it on the loop that runs it.

    Args:
        config: settings.
        callbacks: what to do on changes.
        transport: to the API server; of the same loop.
        random: source of jitter.
        metrics: where to count.
        now_s: CLOCK_BOOTTIME.
        wall_time: text for the times in the record.
        pause: sleeps, returning early when the event is set.
    """

    def __init__(
        self,
        config: LeaseConfig,
        callbacks: LeaderCallbacks,
        transport: Transport,
        *,
        random: Random,
        metrics: LeaderMetrics | None = None,
        now_s: Callable[[], float] = boottime_s,
        wall_time: Callable[[], str] = _wall_time,
        pause: Callable[[float, asyncio.Event], Awaitable[None]] = _pause,
    ) -> None:
        self._config = config
        self._callbacks = callbacks
        self._transport = transport
        self._random = random
        self._metrics = metrics or NullLeaderMetrics()
        self._now_s = now_s
        self._wall_time = wall_time
        self._pause = pause
        self._stop = asyncio.Event()
        self._reported_leader = ""
        self._election = Election(
            identity=config.identity,
            predecessors=config.predecessors,
            namespace=config.namespace,
            name=config.name,
            duration_s=config.lease_duration_s,
        )
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{config.namespace}/leases"

    # --- questions ---------------------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Tell whether the last record seen names us."""
        return self._election.is_leader

    @property
    def found_version(self) -> str:
        """Return the resource version that the lease had when we found it free; "" if we have made it."""
        return self._election.found_version

    @property
    def leader(self) -> str:
        """Return the holder last seen; "" if none yet."""
        return self._election.observed.holder

    @property
    def valid_until_s(self) -> float:
        """Return until when a write may end, on CLOCK_BOOTTIME; 0 when not leading."""
        return self._election.valid_until_s

    def may_write(self, deadline_s: float) -> bool:
        """Tell whether a write that ends within ``deadline_s`` from now is allowed; any thread.

        Under a lease so short that the deadline takes more than a third of it, only that third is asked for: the gate
        would otherwise be closed most of the time, or always. Such writes may end after the lease.
        """
        return self._now_s() + min(deadline_s, self._config.lease_duration_s / 3) <= self._election.valid_until_s

    def validity_s(self) -> float:
        """Return for how many seconds writes are still allowed; any thread."""
        return max(0.0, self._election.valid_until_s - self._now_s())

    def check(self) -> str | None:
        """Return why the health check ``leaderElection`` fails, or None (a standby is healthy)."""
        if not self.is_leader:
            return None
        age_s = self._now_s() - self._election.observed_at_s
        if age_s > self._config.lease_duration_s + HEALTH_TOLERANCE_S:
            return f"failed election to renew leadership on lease {self._config.name}"
        return None

    # --- life cycle --------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask ``run`` to end: release the lease if it is ours. Call it when all writes have ended; on the loop."""
        self._stop.set()

    async def run(self) -> Ended:
        """Take part until the lease is lost or ``stop`` is called."""
        try:
            return await self._run()
        finally:
            self._election.resign()
            self._callbacks.on_stopped_leading()

    async def _run(self) -> Ended:
        if not await self._acquire():
            return Ended.STOPPED
        self._callbacks.on_started_leading()
        ended = await self._renew()
        self._election.resign()
        if ended is Ended.STOPPED and self._config.release_on_stop and self.is_leader:
            await self._release()
        self._callbacks.record_event(f"{self._config.identity} {STOPPED_LEADING}")
        return ended

    async def _acquire(self) -> bool:
        _log.info("attempting to acquire leader lease", lease=self._describe())
        while not self._stop.is_set():
            is_won = await self._try(self._config.renew_deadline_s)
            self._report_leader()
            if is_won:
                self._callbacks.record_event(f"{self._config.identity} {BECAME_LEADER}")
                _log.info("acquired leader lease", lease=self._describe())
                return True
            await self._pause(self._acquire_pause_s(), self._stop)
        return False

    def _acquire_pause_s(self) -> float:
        """Return the wait before the next try to acquire: a look at another's lease is cheap, so it comes sooner."""
        if self.leader and not self.is_leader:
            return self._config.retry_period_s * (1 + self._random.random()) * _STANDBY_FACTOR
        return self._config.retry_period_s * (1 + self._random.random() * JITTER_FACTOR)

    async def _renew(self) -> Ended:
        while not self._stop.is_set():
            is_renewed = await self._renew_once()
            self._report_leader()
            if self._stop.is_set():
                break
            if not is_renewed:
                _log.error("lost leader lease", lease=self._describe(), holder=self.leader)
                return Ended.LOST
            await self._pause(self._config.retry_period_s, self._stop)
        return Ended.STOPPED

    async def _renew_once(self) -> bool:
        """Try until the lease is renewed, the renew deadline has passed, another holder is seen, or we are stopped."""
        deadline_s = self._now_s() + self._config.renew_deadline_s
        while not self._stop.is_set():
            remaining_s = deadline_s - self._now_s()
            if remaining_s <= 0:
                return False
            if await self._try(remaining_s):
                return True
            if not self.is_leader:
                return False
            await self._pause(min(self._config.retry_period_s, max(0.0, deadline_s - self._now_s())), self._stop)
        return False

    async def _try(self, within_s: float) -> bool:
        """Make one try to acquire or renew, all its calls together within ``within_s``."""
        started_s = self._now_s()
        slow_before = self._election.slow_renewals
        step: Call | bool = self._election.begin(started_s, self._wall_time())
        while isinstance(step, Call):
            timeout_s = min(self._config.call_timeout_s, started_s + within_s - self._now_s())
            await async_failpoint("lease.before_send", step.verb.value)
            answer = await self._send(step, timeout_s) if timeout_s > 0 else Answer()
            await async_failpoint("lease.answered", step.verb.value)
            step = self._take(step, answer)
        if self._election.slow_renewals > slow_before:
            self._metrics.leader_slowpath(self._config.name)
        self._metrics.leader_renewed("success" if step else "failure", self._now_s() - started_s)
        return step

    def _take(self, call: Call, answer: Answer) -> Call | bool:
        try:
            return self._election.answer(call, answer, self._now_s(), self._wall_time())
        except ValueError as error:
            _log.error("lease could not be understood", lease=self._describe(), err=str(error))
            return False

    # --- calls -------------------------------------------------------------------------------------------------------

    async def _send(self, call: Call, timeout_s: float) -> Answer:
        try:
            return Answer(await self._request(call, timeout_s))
        except ApiError as error:
            if call.verb is Verb.GET and error.status == 404:
                return Answer(is_not_found=True)
            self._complain(call, error)
        except (KubeError, ValueError) as error:
            self._complain(call, error)
        return Answer()

    async def _request(self, call: Call, timeout_s: float) -> dict[str, Any]:
        path = self._collection if call.verb is Verb.CREATE else f"{self._collection}/{self._config.name}"
        method = {Verb.GET: "GET", Verb.CREATE: "POST", Verb.UPDATE: "PUT"}[call.verb]
        body = None if call.lease is None else msgspec.json.encode(call.lease)
        response = raise_for_status(await self._transport.request(method, path, body=body, timeout_s=timeout_s))
        return msgspec.json.decode(response.body, type=dict[str, Any])

    def _complain(self, call: Call, error: Exception) -> None:
        if call.is_optimistic:
            _log.debug("lease was not renewed optimistically, reading it", lease=self._describe(), err=str(error))
        else:
            _log.error("lease call failed", verb=call.verb.value, lease=self._describe(), err=str(error))

    async def _release(self) -> None:
        """Free the lease, so that a standby need not wait for its end; failing costs only that."""
        await async_failpoint("lease.before_release")
        deadline_s = self._now_s() + self._config.renew_deadline_s
        for _ in range(_RELEASE_TRIES):
            remaining_s = min(self._config.call_timeout_s, deadline_s - self._now_s())
            if remaining_s <= 0:
                return
            try:
                if await self._release_once(remaining_s):
                    return
            except ApiError as error:
                if error.status != 409:
                    _log.error("lease was not released", lease=self._describe(), err=str(error))
                    return
            except (KubeError, ValueError) as error:
                _log.error("lease was not released", lease=self._describe(), err=str(error))
                return
        _log.error("lease was not released", lease=self._describe(), err="changed by somebody else at each try")

    async def _release_once(self, timeout_s: float) -> bool:
        lease = await self._request(Call(Verb.GET, self._now_s()), timeout_s)
        call = self._election.release(lease, self._now_s(), self._wall_time())
        if call is not None:
            self._election.released(call, await self._request(call, timeout_s), self._now_s())
            _log.info("released leader lease", lease=self._describe())
        return True

    # --- telling -----------------------------------------------------------------------------------------------------

    def _report_leader(self) -> None:
        if self.leader == self._reported_leader:
            return
        self._reported_leader = self.leader
        self._metrics.leader_changed()
        _log.info("new leader elected", identity=self.leader, lease=self._describe())
        self._callbacks.on_new_leader(self.leader)

    def _describe(self) -> str:
        return f"{self._config.namespace}/{self._config.name}"
